"""Which actions can be done in a state, without trying them all.

Most actions need some fact of which few are true at a time, such as where the agent is. Operators
are filed under one such fact; only those whose fact is true are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from sandboxgym.sandboxes.text.grounding import Operator, World

MAX_VIEWS = 1_000


@dataclass(frozen=True, slots=True)
class View:
    """The operators that come into question in a state, and the bits that decide among them."""

    candidates: tuple[Operator, ...]
    reads: int

    def applicable(self, state: int) -> list[int]:
        """Return the indices of those whose condition holds, in ascending order."""
        return [operator.index for operator in self.candidates if operator.condition.holds(state)]


class Successors:
    """The operators of a world, filed by a fact that each of them needs."""

    def __init__(self, world: World) -> None:
        self._files: dict[int, list[Operator]] = {}
        for key, operator in zip(_keys(world), world.operators, strict=True):
            self._files.setdefault(key, []).append(operator)
        self._always = self._files.pop(0, [])
        self._key_bits = 0
        for key in self._files:
            self._key_bits |= key
        self._views: dict[int, View] = {}

    def view(self, state: int) -> View:
        """Return the view for a state; its `reads` include whatever the choice of it depends on."""
        keys = state & self._key_bits
        view = self._views.get(keys)
        if view is None:
            if len(self._views) >= MAX_VIEWS:
                self._views.clear()
            view = self._views[keys] = self._make(keys)
        return view

    def _make(self, keys: int) -> View:
        candidates = list(self._always)
        while keys:
            key = keys & -keys
            keys ^= key
            candidates += self._files[key]
        reads = self._key_bits
        for operator in candidates:
            reads |= operator.condition.needs | operator.condition.forbids
        candidates.sort(key=lambda operator: operator.index)
        return View(tuple(candidates), reads)


def _keys(world: World) -> list[int]:
    """Choose for every operator one of the bits that it needs, or 0 if it needs none.

    The best predicate is one that many operators need and few facts satisfy, judged by the start.
    """
    of_predicate: dict[str, int] = {}
    for fact, bit in world.table.facts.items():
        of_predicate[fact[0]] = of_predicate.get(fact[0], 0) | 1 << bit

    def worth(mask: int) -> float:
        users = sum(1 for operator in world.operators if operator.condition.needs & mask)
        return users / (1 + (world.init & mask).bit_count())

    masks = sorted(of_predicate.values(), key=worth, reverse=True)
    keys: list[int] = []
    for operator in world.operators:
        shared = (operator.condition.needs & mask for mask in masks)
        needed = next((bits for bits in shared if bits), 0)
        keys.append(needed & -needed)
    return keys
