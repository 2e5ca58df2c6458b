"""A cache that forgets what was not used for longest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from keepcache.counting import Counts


class LRUCache:
    """Keeps the entries that were used last.

    Args:
        size: How many entries are kept.
        on_drop: Called with the key and value of every entry that has to go.

    Raises:
        ValueError: Not even one entry would be kept.
    """

    def __init__(self, size: int, on_drop: Callable[[Hashable, Any], None] | None = None) -> None:
        if size < 1:
            raise ValueError(f"a cache needs room for an entry, not for {size}")
        self.size = size
        self.counts = Counts()
        self._on_drop = on_drop
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def get(self, key: Hashable, default: Any = None) -> Any:
        """The value of a key, which counts as a use of it."""
        if key not in self._entries:
            self.counts.misses += 1
            return default
        self.counts.hits += 1
        self._entries.move_to_end(key)
        return self._entries[key]

    def peek(self, key: Hashable, default: Any = None) -> Any:
        """The value of a key, which counts as nothing."""
        return self._entries.get(key, default)

    def put(self, key: Hashable, value: Any) -> None:
        """Set the value of a key, which counts as a use of it."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        self._shrink()

    def update(self, entries: Iterable[tuple[Hashable, Any]]) -> None:
        """Put several entries, one after another."""
        for key, value in entries:
            self.put(key, value)

    def pop(self, key: Hashable, default: Any = None) -> Any:
        """Take an entry out. It is not dropped: `on_drop` does not hear of it."""
        return self._entries.pop(key, default)

    def resize(self, size: int) -> None:
        """Keep another number of entries from now on."""
        if size < 1:
            raise ValueError(f"a cache needs room for an entry, not for {size}")
        self.size = size
        self._shrink()

    def keys(self, newest: int | None = None) -> list[Hashable]:
        """The keys, the one that was used last first.

        Args:
            newest: How many of them; None gives all.
        """
        found = list(reversed(self._entries))
        return found if newest is None else found[:newest]

    def _shrink(self) -> None:
        while len(self._entries) > self.size:
            key, value = self._entries.popitem(last=False)
            self.counts.dropped += 1
            if self._on_drop is not None:
                self._on_drop(key, value)
