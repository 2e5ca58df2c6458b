"""Which operators are applicable in a state, without trying them all.

Most operators need some fact of which few are true at a time, such as where the agent is. They are
filed under one such fact, and those in a file again under another one that they need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sandboxgym.sandboxes.text.grounding import Operator, World

MAX_VIEWS = 1_000


class Files:
    """Operators, each under one bit that it needs, or apart if there is none to file it under."""

    def __init__(self, operators: Iterable[Operator], masks: list[int], used: int = 0) -> None:
        """File operators.

        Args:
            operators: The operators.
            masks: Groups of bits, the best to file by first.
            used: Bits that are not to be filed by.
        """
        self.apart: list[Operator] = []
        self.by_bit: dict[int, list[Operator]] = {}
        self.bits = 0
        for operator in operators:
            needs = operator.condition.needs & ~used
            key = next((needs & mask for mask in masks if needs & mask), 0)
            key &= -key
            if key:
                self.by_bit.setdefault(key, []).append(operator)
                self.bits |= key
            else:
                self.apart.append(operator)

    def candidates(self, state: int) -> Iterator[Operator]:
        """Yield the operators that are apart and those whose bit is set."""
        yield from self.apart
        for bit in single_bits(state & self.bits):
            yield from self.by_bit[bit]


class View:
    """The operators that come into question in a state, and the bits that decide among them."""

    def __init__(self, operators: list[Operator], masks: list[int], used: int) -> None:
        self._files = Files(operators, masks, used)
        self.reads = used
        for operator in operators:
            self.reads |= operator.condition.needs | operator.condition.forbids

    def applicable(self, state: int) -> list[int]:
        """Return the indices of those whose condition holds, in ascending order."""
        candidates = self._files.candidates(state)
        return sorted([each.index for each in candidates if each.condition.holds(state)])


class Successors:
    """The operators of a world."""

    def __init__(self, world: World) -> None:
        self._masks = _masks(world)
        self._files = Files(world.operators, self._masks)
        self._views: dict[int, View] = {}

    def view(self, state: int) -> View:
        """Return the view for a state; its `reads` have all bits that the choice depends on."""
        keys = state & self._files.bits
        view = self._views.get(keys)
        if view is None:
            if len(self._views) >= MAX_VIEWS:
                self._views.clear()
            operators = list(self._files.candidates(state))
            view = self._views[keys] = View(operators, self._masks, self._files.bits)
        return view


def single_bits(bits: int) -> Iterator[int]:
    """Yield every bit that is set, as a number of its own."""
    while bits:
        lowest = bits & -bits
        yield lowest
        bits ^= lowest


def _masks(world: World) -> list[int]:
    """Return the bits of each predicate, those first that are best to file by.

    The best predicate is one that many operators need and few facts satisfy, judged by the start.
    """
    of_predicate: dict[str, int] = {}
    for fact, bit in world.table.facts.items():
        of_predicate[fact[0]] = of_predicate.get(fact[0], 0) | 1 << bit

    def worth(mask: int) -> float:
        users = sum(1 for operator in world.operators if operator.condition.needs & mask)
        return users / (1 + (world.init & mask).bit_count())

    return sorted(of_predicate.values(), key=worth, reverse=True)
