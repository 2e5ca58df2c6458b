"""A cache that forgets what is too old."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any


class TTLCache:
    """Keeps entries for some time.

    Args:
        seconds: How long an entry lives, unless `put` says otherwise.
        clock: Tells the time.
        renew: Whether reading an entry lets it live for its whole time again.
    """

    def __init__(
        self,
        seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        renew: bool = False,
    ) -> None:
        self.seconds = seconds
        self.renew = renew
        self._clock = clock
        self._entries: dict[Hashable, tuple[Any, float, float]] = {}

    def __len__(self) -> int:
        now = self._clock()
        return sum(1 for _, _, ends in self._entries.values() if now < ends)

    def put(self, key: Hashable, value: Any, seconds: float | None = None) -> None:
        """Set the value of a key; its time starts anew."""
        lifetime = self.seconds if seconds is None else seconds
        self._entries[key] = (value, lifetime, self._clock() + lifetime)

    def get(self, key: Hashable, default: Any = None) -> Any:
        """The value of a key, if its time is not over."""
        if key not in self._entries:
            return default
        value, lifetime, ends = self._entries[key]
        now = self._clock()
        if now >= ends:
            del self._entries[key]
            return default
        if self.renew:
            self._entries[key] = (value, lifetime, now + lifetime)
        return value

    def left(self, key: Hashable) -> float:
        """How many seconds an entry still has; 0 for one that is not there."""
        if key not in self._entries:
            return 0.0
        _, _, ends = self._entries[key]
        return max(0.0, ends - self._clock())

    def touch(self, key: Hashable, seconds: float | None = None) -> bool:
        """Let the time of an entry start anew, and say whether it was still there.

        Args:
            key: Of the entry.
            seconds: How long it lives from now on; None takes as long as before.
        """
        if self.left(key) <= 0:
            return False
        value, lifetime, _ = self._entries[key]
        self.put(key, value, lifetime if seconds is None else seconds)
        return True

    def purge(self) -> list[Hashable]:
        """Remove all entries whose time is over, and say which they were."""
        now = self._clock()
        over = [key for key, (_, _, ends) in self._entries.items() if ends <= now]
        for key in over:
            del self._entries[key]
        return over
