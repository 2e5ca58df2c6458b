"""Where a store keeps its blobs: the interface, and the shelf in memory."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Protocol

from sandboxgym.core.errors import StoreCorruptError, StoreError
from sandboxgym.store.blob import Blob
from sandboxgym.store.pieces import Pieces


@dataclass(frozen=True)
class Slot:
    """What a shelf knows of one snapshot.

    Attributes:
        state: The key of its state; None where it was stored without, or where it was dropped.
        dropped: Whether its state was dropped to stay within a budget.
    """

    state: bytes | None
    dropped: bool = False


@dataclass(frozen=True)
class Fault:
    """Something in a store that is not what was stored.

    Attributes:
        name: What is at fault: a file, or the kind and key of a blob.
        reason: What is wrong with it.
        keys: The snapshots that it makes unreadable.
    """

    name: str
    reason: str
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        unreadable = f" (unreadable: {', '.join(self.keys)})" if self.keys else ""
        return f"{self.name}: {self.reason}{unreadable}"


class Shelf(Protocol):
    """Keeps the blobs of snapshots, each once, and drops states where they are too many."""

    def add(self, pieces: Pieces) -> None:
        """Keep a snapshot."""

    def slot(self, frame: bytes) -> Slot | None:
        """What is known of a snapshot, or None where there is none."""

    def frames(self) -> list[bytes]:
        """All snapshots, by the keys of their frames, in the order in which they were added."""

    def read(self, key: bytes, limit: int) -> Blob:
        """Read a blob whose content has at most `limit` bytes."""

    def use(self, state: bytes) -> None:
        """Note that a state is in use."""

    def remove(self, frame: bytes) -> None:
        """Do without a snapshot that is not pinned."""

    def pin(self, frame: bytes) -> None:
        """Keep a snapshot and its state, whatever the budget, until it is unpinned as often."""

    def unpin(self, frame: bytes) -> None:
        """Take back one `pin`."""

    def is_pinned(self, frame: bytes) -> bool:
        """Whether this process has pinned a snapshot."""

    def size(self) -> int:
        """Bytes in use."""

    def gc(self, drop_corrupt: bool) -> None:
        """Free what no snapshot needs."""

    def verify(self) -> list[Fault]:
        """Read everything and name what is not as it should be."""

    def close(self) -> None:
        """Give back what is held of the system."""


class MemoryShelf:
    """Blobs in this process. It never has anything unused, so there is nothing to collect."""

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.bytes = 0
        self._blobs: OrderedDict[bytes, Blob] = OrderedDict()
        self._states: OrderedDict[bytes, None] = OrderedDict()  # least recently used first
        self._entries: dict[bytes, bytes | None] = {}
        self._users: Counter[bytes] = Counter()
        self._pins: Counter[bytes] = Counter()

    def add(self, pieces: Pieces) -> None:
        """Keep a snapshot."""
        frame, state = pieces.frame, pieces.state
        if frame.key not in self._entries:
            self._entries[frame.key] = None
            for blob in (*pieces.blocks, frame):
                self._keep(blob)
        known = self._entries[frame.key]
        if state is not None and known not in self._blobs:
            if known is not None:
                self._let_go(known)
            self._entries[frame.key] = known = state.key
            self._keep(state)
        if known is not None and known in self._blobs:
            self.use(known)
        self._make_room()

    def _keep(self, blob: Blob) -> None:
        self._users[blob.key] += 1
        if blob.key not in self._blobs:
            self._blobs[blob.key] = blob
            self.bytes += len(blob.content)

    def _make_room(self) -> None:
        pinned = {self._entries[frame] for frame in +self._pins}
        for state in [state for state in self._states if state not in pinned]:
            if self.bytes <= self.budget_bytes:
                return
            self._forget(state)

    def _forget(self, key: bytes) -> None:
        self._states.pop(key, None)
        blob = self._blobs.pop(key, None)
        self.bytes -= len(blob.content) if blob is not None else 0

    def slot(self, frame: bytes) -> Slot | None:
        """What is known of a snapshot, or None where there is none."""
        if frame not in self._entries:
            return None
        state = self._entries[frame]
        there = state if state in self._blobs else None
        return Slot(there, dropped=state is not None and there is None)

    def frames(self) -> list[bytes]:
        """All snapshots, by the keys of their frames, in the order in which they were added."""
        return list(self._entries)

    def read(self, key: bytes, limit: int) -> Blob:
        """Read a blob whose content has at most `limit` bytes."""
        blob = self._blobs[key]
        if len(blob.content) > limit:
            raise StoreCorruptError(f"{blob.kind.name} {key.hex()} has more than {limit} bytes")
        return blob

    def use(self, state: bytes) -> None:
        """Note that a state is in use."""
        self._states[state] = None
        self._states.move_to_end(state)

    def remove(self, frame: bytes) -> None:
        """Do without a snapshot that is not pinned."""
        if self._pins[frame]:
            raise StoreError(f"the snapshot {frame.hex()} is pinned: unpin it first")
        blobs = [frame, *([state] if (state := self._entries.pop(frame)) else [])]
        while blobs:
            key = blobs.pop()
            blobs += self._blobs[key].links if key in self._blobs else ()
            self._let_go(key)

    def _let_go(self, key: bytes) -> None:
        self._users[key] -= 1
        if self._users[key] == 0:
            del self._users[key]
            self._forget(key)

    def pin(self, frame: bytes) -> None:
        """Keep a snapshot and its state, whatever the budget, until it is unpinned as often."""
        self._pins[frame] += 1

    def unpin(self, frame: bytes) -> None:
        """Take back one `pin`."""
        if not self._pins[frame]:
            raise StoreError(f"the snapshot {frame.hex()} is not pinned")
        self._pins[frame] -= 1
        self._make_room()

    def is_pinned(self, frame: bytes) -> bool:
        """Whether this process has pinned a snapshot."""
        return self._pins[frame] > 0

    def size(self) -> int:
        """Bytes in use."""
        return self.bytes

    def gc(self, drop_corrupt: bool) -> None:
        """Free what no snapshot needs."""

    def verify(self) -> list[Fault]:
        """Read everything and name what is not as it should be."""
        faults = []
        for key, blob in self._blobs.items():
            found = Blob.of(blob.kind, blob.content, blob.links).key
            if found != key:
                faults.append(Fault(f"{blob.kind.name} {key.hex()}", f"hashes to {found.hex()}"))
        return faults

    def close(self) -> None:
        """Give back what is held of the system."""
