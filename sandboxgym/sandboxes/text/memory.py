"""A bounded memory for results that can be computed again at any time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

MAX_REMEMBERED = 2_000

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memory(Generic[K, V]):
    """Keeps results by key until there are too many, and then forgets them all.

    Only what depends on nothing but its key may be kept; so forgetting is never seen from outside.
    """

    __slots__ = ("_kept", "_room")

    def __init__(self, room: int | None = None) -> None:
        self._room = MAX_REMEMBERED if room is None else room
        self._kept: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """Return what was kept, or None."""
        return self._kept.get(key)

    def keep(self, key: K, value: V) -> V:
        """Keep a value, and return it."""
        if len(self._kept) >= self._room:
            self._kept.clear()
        self._kept[key] = value
        return value
