"""`SnapshotStore`: many snapshots, each part of them once, in memory or in a folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sandboxgym.core.errors import SnapshotCorruptError, SnapshotNotFoundError, StoreCorruptError
from sandboxgym.core.snapshot import DEFAULT_MAX_BYTES, Snapshot
from sandboxgym.store.disk_shelf import DiskShelf
from sandboxgym.store.pieces import cut, join
from sandboxgym.store.shelf import Fault, MemoryShelf, Shelf, Slot

MEMORY_BUDGET = 256 * 2**20
DISK_BUDGET = 8 * 2**30


@dataclass(frozen=True)
class Entry:
    """One snapshot in a store.

    Attributes:
        key: What `put` returned.
        spec: Id of its environment.
        step: Number of actions since the reset.
        digest: The snapshot's digest.
        state: "kept"; "dropped" to stay within the budget; "none" where it was stored without.
        pinned: Whether this process has pinned it.
    """

    key: str
    spec: str
    step: int
    digest: str
    state: Literal["kept", "dropped", "none"]
    pinned: bool


class SnapshotStore:
    """Keeps snapshots by the hash of their content, and what they have in common only once.

    In a directory, a snapshot is on disk for good when `put` returns; the memory then holds only
    what was used last. Several processes may use a directory at once, and none of them can harm it
    by being killed. Beyond the budget, the states that were not used for longest are dropped:
    those snapshots keep their recipe, and restoring them replays it.

    A snapshot's `held` (what is alive in this process) stays in memory, as long as the store is
    open.

    >>> import gymnasium as gym, sandboxgym as sg
    >>> env = gym.make("sandboxgym/ALFWorld-v0", source="synthetic")
    >>> obs, info = env.reset(seed=7)
    >>> store = sg.SnapshotStore()
    >>> key = store.put(env.snapshot())
    >>> store.get(key).step
    0

    Args:
        directory: Where to keep them; made if need be. None keeps them in memory.
        budget_bytes: How much memory the contents may take.
        disk_budget_bytes: How much disk the packs may take, or None for any amount. Recipes are
            never dropped, so where these alone are larger, the store grows beyond it.
        max_bytes: Refuse a snapshot of more bytes, also when reading.
        create: Make the directory if it is not a store yet; False raises `StoreError` instead.

    Raises:
        StoreError: The directory cannot be used.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        budget_bytes: int = MEMORY_BUDGET,
        disk_budget_bytes: int | None = DISK_BUDGET,
        max_bytes: int = DEFAULT_MAX_BYTES,
        create: bool = True,
    ) -> None:
        self.directory = Path(directory) if directory is not None else None
        self.max_bytes = max_bytes
        self._turn = threading.RLock()
        self._held: dict[bytes, Any] = {}
        self._shelf: Shelf
        if self.directory is None:
            self._shelf = MemoryShelf(budget_bytes)
        else:
            self._shelf = DiskShelf(
                self.directory,
                budget_bytes=budget_bytes,
                disk_budget_bytes=disk_budget_bytes,
                max_bytes=max_bytes,
                create=create,
            )

    def put(self, snapshot: Snapshot) -> str:
        """Store a snapshot, and return the key by which `get` finds it.

        The key is a hash of all that the snapshot is except its state, for which its digest stands.
        (Two snapshots with equal digests have equal futures, but may have come there in different
        ways and show different observations; they have different keys.)

        Raises:
            StateEncodingError: It is not plain data, or larger than `max_bytes`.
            StoreError: It could not be written (a full disk, say). What was stored before is there.
        """
        pieces = cut(snapshot, self.max_bytes)
        with self._turn:
            self._shelf.add(pieces)
            if snapshot.held is not None:
                self._held[pieces.frame.key] = snapshot.held
        return pieces.frame.key.hex()

    def get(self, key: str) -> Snapshot:
        """The snapshot of a key. Its `state` is None where that was dropped.

        Raises:
            SnapshotNotFoundError: There is none.
            StoreCorruptError: A part of it is not what was stored; the message names it.
        """
        with self._turn:
            frame, slot = self._slot(key)
            if slot.state is not None:
                self._shelf.use(slot.state)
            try:
                snapshot = join(frame, slot.state, self._shelf.read, self.max_bytes)
            except SnapshotCorruptError as error:
                raise StoreCorruptError(f"the snapshot {key} cannot be used: {error}") from error
            return replace(snapshot, held=self._held.get(frame))

    def __contains__(self, key: object) -> bool:
        frame = _frame(key)
        with self._turn:
            return frame is not None and self._shelf.slot(frame) is not None

    def __iter__(self) -> Iterator[str]:
        with self._turn:
            return iter([frame.hex() for frame in self._shelf.frames()])

    def __len__(self) -> int:
        with self._turn:
            return len(self._shelf.frames())

    @property
    def size(self) -> int:
        """Bytes that all contents take: on disk, or without a directory in memory."""
        with self._turn:
            return self._shelf.size()

    def pin(self, key: str) -> None:
        """Never drop this snapshot's state, in any process, until `unpin` was called as often.

        Pins end with `close`, or with the process, however it ends.

        Raises:
            SnapshotNotFoundError: There is no such snapshot.
        """
        with self._turn:
            self._shelf.pin(self._slot(key)[0])

    def unpin(self, key: str) -> None:
        """Take back one `pin`.

        Raises:
            SnapshotNotFoundError: There is no such snapshot.
            StoreError: This process has not pinned it.
        """
        with self._turn:
            self._shelf.unpin(self._slot(key)[0])

    def remove(self, key: str) -> None:
        """Do without a snapshot; `gc` frees what no other one needs.

        Raises:
            SnapshotNotFoundError: There is none.
            StoreError: It is pinned.
        """
        with self._turn:
            frame, _ = self._slot(key)
            self._shelf.remove(frame)
            self._held.pop(frame, None)

    def ls(self) -> list[Entry]:
        """All snapshots, in the order in which they were put.

        Raises:
            StoreCorruptError: A part of one is not what was stored.
        """
        with self._turn:
            return [self._entry(key) for key in self]

    def _entry(self, key: str) -> Entry:
        frame, slot = self._slot(key)
        snapshot = join(frame, None, self._shelf.read, self.max_bytes)
        state: Literal["kept", "dropped", "none"] = "none"
        if slot.dropped:
            state = "dropped"
        elif slot.state is not None:
            state = "kept"
        pinned = self._shelf.is_pinned(frame)
        return Entry(key, snapshot.spec.id, snapshot.step, snapshot.digest, state, pinned)

    def gc(self, *, drop_corrupt: bool = False) -> int:
        """Free what no snapshot needs any more.

        Args:
            drop_corrupt: Do without what `verify` finds fault with: corrupt states are dropped down
                to their recipe, and snapshots whose recipe is corrupt are removed.

        Returns:
            How many bytes were freed.

        Raises:
            StoreCorruptError: The store is damaged, and `drop_corrupt` is False.
        """
        with self._turn:
            before = self._shelf.size()
            self._shelf.gc(drop_corrupt)
            return before - self._shelf.size()

    def verify(self) -> list[Fault]:
        """Read everything; the faults name what is not as it was stored. Empty if all is well."""
        with self._turn:
            return self._shelf.verify()

    def close(self) -> None:
        """Unpin what this store has pinned, and let go of what it holds alive."""
        with self._turn:
            self._held.clear()
            self._shelf.close()

    def __enter__(self) -> SnapshotStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _slot(self, key: str) -> tuple[bytes, Slot]:
        frame = _frame(key)
        slot = self._shelf.slot(frame) if frame is not None else None
        if frame is None or slot is None:
            where = self.directory or "this store"
            raise SnapshotNotFoundError(
                f"there is no snapshot {key!r} in {where}: `ls()` shows those that are"
            )
        return frame, slot


def _frame(key: object) -> bytes | None:
    """The key of a frame, if `key` is one's name."""
    if not isinstance(key, str):
        return None
    try:
        frame = bytes.fromhex(key)
    except ValueError:
        return None
    return frame if frame.hex() == key else None
