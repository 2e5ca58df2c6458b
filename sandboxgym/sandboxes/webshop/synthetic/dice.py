"""Reproducible random choices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Random choices that depend on a key alone: not on process, hash seed or Python version.

    Only `random.Random.random` keeps its sequence across Python versions, so every choice here is
    made from it.
    """

    def __init__(self, *key: str | int) -> None:
        # A text seeds through SHA-512, whatever PYTHONHASHSEED is.
        self._draw = random.Random("/".join(map(str, key))).random

    def chance(self, probability: float) -> bool:
        """Whether an event of this probability happens."""
        return self._draw() < probability

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._draw() * (high - low + 1))

    def choice(self, items: Sequence[T]) -> T:
        """One of `items`."""
        return items[int(self._draw() * len(items))]

    def some(self, items: Sequence[T], number: int) -> list[T]:
        """`number` different ones of `items` (all, where there are fewer), in random order."""
        pool = list(items)
        return [pool.pop(int(self._draw() * len(pool))) for _ in range(min(number, len(pool)))]

    def selection(self, items: Sequence[T], number: int) -> list[T]:
        """`number` of `items` (all, where there are fewer), in the order that they stand in."""
        taken = set(self.some(range(len(items)), number))
        return [item for at, item in enumerate(items) if at in taken]

    def run(self, items: Sequence[T], number: int) -> list[T]:
        """`number` neighbours (all, where there are fewer)."""
        start = self.between(0, max(0, len(items) - number))
        return list(items[start : start + number])
