"""The shelf in memory."""

from __future__ import annotations

from collections import Counter, OrderedDict

from sandboxgym.core.errors import StoreError
from sandboxgym.store.blob import Blob
from sandboxgym.store.pieces import Pieces
from sandboxgym.store.shelf import Fault, Slot


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
            if len(state.content) > self.budget_bytes:  # all others would have to go
                self._forget(state.key)
        if known is not None and known in self._blobs:
            self.use(known)
        self._make_room()

    def _keep(self, blob: Blob) -> None:
        self._users[blob.key] += 1
        if blob.key not in self._blobs:
            self._blobs[blob.key] = blob
            self.bytes += len(blob.content)

    def _make_room(self) -> None:
        if self.bytes <= self.budget_bytes:
            return
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
            raise StoreError(f"{blob.kind.name} {key.hex()} has more than {limit} bytes")
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
