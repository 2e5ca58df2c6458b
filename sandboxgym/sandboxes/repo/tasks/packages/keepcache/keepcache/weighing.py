"""A cache whose entries are of different weights."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any


class WeightedCache:
    """Keeps entries up to a total weight; the lightest use goes first.

    Args:
        capacity: The total weight of all entries.
        weigh: Says what a value weighs.
    """

    def __init__(self, capacity: int, weigh: Callable[[Any], int] = len) -> None:
        self.capacity = capacity
        self.weight = 0
        self._weigh = weigh
        self._entries: dict[Hashable, tuple[Any, int]] = {}
        self._uses: dict[Hashable, int] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def get(self, key: Hashable, default: Any = None) -> Any:
        """The value of a key, which is used once more."""
        if key not in self._entries:
            return default
        self._uses[key] += 1
        return self._entries[key][0]

    def put(self, key: Hashable, value: Any) -> bool:
        """Set the value of a key.

        Returns:
            Whether it was kept: what weighs more than the whole capacity is not, and what was
            there under its key is gone.
        """
        uses = self._uses.get(key, 0)
        self.remove(key)
        weight = self._weigh(value)
        if weight > self.capacity:
            return False
        while self.weight + weight > self.capacity:
            self.remove(self._least_used())
        self._entries[key] = (value, weight)
        self._uses[key] = uses
        self.weight += weight
        return True

    def remove(self, key: Hashable) -> bool:
        """Remove an entry, and say whether it was there."""
        if key not in self._entries:
            return False
        _, weight = self._entries.pop(key)
        del self._uses[key]
        self.weight -= weight
        return True

    def heaviest(self, number: int = 1) -> list[Hashable]:
        """The keys of the entries that weigh most, the heaviest first."""
        by_weight = sorted(self._entries, key=lambda key: self._entries[key][1], reverse=True)
        return by_weight[:number]

    def _least_used(self) -> Hashable:
        """Of those that were used as little, the one that was put first."""
        return min(self._entries, key=lambda key: self._uses[key])
