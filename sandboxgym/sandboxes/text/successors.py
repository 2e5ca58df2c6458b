"""Which operators are applicable in a state, without trying them all.

Most operators need some fact of which few are true at a time, such as where the agent is. They are
filed under one such fact, and those in a file again under another one that they need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from sandboxgym.sandboxes.text.grounding import Operator, World
from sandboxgym.sandboxes.text.memory import Memory

MAX_VIEWS = 200


class Files:
    """Operators, each under one bit that it needs, or apart if there is none to file it under."""

    def __init__(self, operators: Iterable[Operator], ranks: list[int], used: int = 0) -> None:
        """File operators.

        Args:
            operators: The operators.
            ranks: For every bit, how good it is to file by; low is good.
            used: Bits that are not to be filed by.
        """
        self.apart: list[Operator] = []
        self.by_bit: dict[int, list[Operator]] = {}
        self.bits = 0
        for operator in operators:
            needs = operator.condition.needs & ~used
            if needs:
                key = min(single_bits(needs), key=lambda bit: ranks[bit.bit_length() - 1])
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

    def __init__(self, operators: list[Operator], ranks: list[int], used: int) -> None:
        self._files = Files(operators, ranks, used)
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
        self._ranks = _ranks(world)
        self._files = Files(world.operators, self._ranks)
        self._views: Memory[int, View] = Memory(MAX_VIEWS)

    def view(self, state: int) -> View:
        """Return the view for a state; its `reads` have all bits that the choice depends on."""
        keys = state & self._files.bits
        view = self._views.get(keys)
        if view is None:
            operators = list(self._files.candidates(state))
            view = self._views.keep(keys, View(operators, self._ranks, self._files.bits))
        return view


def single_bits(bits: int) -> Iterator[int]:
    """Yield every bit that is set, as a number of its own."""
    while bits:
        lowest = bits & -bits
        yield lowest
        bits ^= lowest


def _ranks(world: World) -> list[int]:
    """Return for every bit of a fact how good its predicate is to file by, from 0 on.

    The best predicate is one that many operators need and few facts satisfy, judged by the start.
    """
    predicates = [fact[0] for fact in world.table.facts]
    needed = Counter(
        predicates[bit.bit_length() - 1]
        for operator in world.operators
        for bit in single_bits(operator.condition.needs)
    )
    true = Counter(predicates[bit.bit_length() - 1] for bit in single_bits(world.true_at_start()))
    best = sorted(set(predicates), key=lambda name: (-needed[name] / (1 + true[name]), name))
    rank = {name: place for place, name in enumerate(best)}
    return [rank[name] for name in predicates]
