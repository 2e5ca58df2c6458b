"""Reproducible random choices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Random choices that depend on a key alone: not on process, hash seed or Python version.

    Only :meth:`random.Random.random` keeps its sequence across Python versions, so every choice
    here is made from it.
    """

    def __init__(self, *key: str | int) -> None:
        # A text seeds through SHA-512, whatever PYTHONHASHSEED is.
        self._random = random.Random("/".join(map(str, key)))

    def chance(self, probability: float) -> bool:
        """Whether an event of this probability happens."""
        return self._random.random() < probability

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def choice(self, items: Sequence[T]) -> T:
        """One of ``items``."""
        return items[self.between(0, len(items) - 1)]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """``items`` in random order (Fisher and Yates)."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = self.between(0, last)
            result[last], result[other] = result[other], result[last]
        return result
