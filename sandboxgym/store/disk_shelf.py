"""The shelf on disk: what a store does with snapshots, in terms of blobs and notes."""

from __future__ import annotations

from pathlib import Path

from sandboxgym.core.errors import SnapshotNotFoundError, StoreCorruptError, StoreError
from sandboxgym.store import rewriting, verifying
from sandboxgym.store.blob import Blob, Kind
from sandboxgym.store.disk import Disk
from sandboxgym.store.pieces import Pieces
from sandboxgym.store.pins import Pins
from sandboxgym.store.record import note
from sandboxgym.store.shelf import Fault, Slot

_LARGEST_PACK = 2**26
_SMALLEST_PACK = 2**18


class DiskShelf:
    """Keeps snapshots in a folder, also for other processes; see `sandboxgym.store.disk`."""

    def __init__(
        self,
        folder: Path,
        *,
        budget_bytes: int,
        disk_budget_bytes: int | None,
        max_bytes: int,
        create: bool,
    ) -> None:
        # Of several packs, those that hold nothing to be dropped need not be rewritten.
        eighth = (disk_budget_bytes or 2**40) // 8
        self.disk = Disk(
            folder,
            pack_bytes=max(_SMALLEST_PACK, min(eighth, _LARGEST_PACK)),
            cache_bytes=budget_bytes,
            max_bytes=max_bytes,
            create=create,
        )
        self.budget_bytes = disk_budget_bytes
        self.pins = Pins(folder / "pins")

    def add(self, pieces: Pieces) -> None:
        """Keep a snapshot; on disk when this returns."""
        disk, frame = self.disk, pieces.frame.key
        disk.refresh()
        if self._has(pieces):
            return self._use(frame)
        with disk.changing("storing a snapshot"):
            if not self._has(pieces):
                self._append(pieces)
        for blob in pieces.blobs:
            if blob.key in disk.index.blobs:
                disk.cache.add(blob)
        return self._use(frame)

    def _has(self, pieces: Pieces) -> bool:
        slot = self.slot(pieces.frame.key)
        return slot is not None and (pieces.state is None or slot.state is not None)

    def _append(self, pieces: Pieces) -> None:
        disk = self.disk
        state = pieces.state
        links = (state.key,) if state is not None else ()
        new = [blob for blob in pieces.blobs if blob.key not in disk.index.blobs]
        notes = note(Kind.ENTRY, pieces.frame.key, *links)
        records = disk.records_of(new)
        if self.budget_bytes is not None and disk.size + len(records) > self.budget_bytes:
            if state in new and len(records) > self.budget_bytes // 2:
                new.remove(state)
                notes += note(Kind.DROPPED, state.key)
            need = len(records) + len(notes)
            rewriting.make_room(disk, need, self.budget_bytes, {*self._pinned_states(), *links})
            new = [blob for blob in new if blob.key not in disk.index.blobs]
            records = disk.records_of(new)
        disk.append(records + notes)

    def _use(self, frame: bytes) -> None:
        slot = self.slot(frame)
        if slot is not None and slot.state is not None:
            self.disk.index.use(slot.state)

    def _pinned_states(self) -> set[bytes]:
        index = self.disk.index
        states = {index.state_of(frame) for frame in self.pins.all() if frame in index.entries}
        return {state for state in states if state is not None}

    def slot(self, frame: bytes) -> Slot | None:
        """What is known of a snapshot, or None where there is none."""
        index = self.disk.index
        if frame not in index.entries:
            self.disk.refresh()
        if frame not in index.entries:
            return None
        state = index.state_of(frame)
        if state is None or state in index.blobs or state not in index.dropped:
            return Slot(state)  # a state that is lost is an error, once it is read
        return Slot(None, dropped=True)

    def frames(self) -> list[bytes]:
        """All snapshots, by the keys of their frames, in the order in which they were added."""
        self.disk.refresh()
        return list(self.disk.index.entries)

    def read(self, key: bytes, limit: int) -> Blob:
        """Read a blob whose content has at most `limit` bytes."""
        return self.disk.read(key, limit)

    def use(self, state: bytes) -> None:
        """Note that a state is in use."""
        self.disk.index.use(state)

    def remove(self, frame: bytes) -> None:
        """Do without a snapshot that is not pinned by any process."""
        with self.disk.changing("removing a snapshot"):
            if frame not in self.disk.index.entries:
                raise SnapshotNotFoundError(f"there is no snapshot {frame.hex()}")
            if frame in self.pins.all():
                raise StoreError(
                    f"the snapshot {frame.hex()} is pinned, here or in another process: unpin it"
                )
            self.disk.append(note(Kind.REMOVED, frame))

    def pin(self, frame: bytes) -> None:
        """Keep a snapshot and its state, whatever the budget, until it is unpinned as often."""
        with self.disk.changing("pinning a snapshot"):
            self.pins.add(frame)

    def unpin(self, frame: bytes) -> None:
        """Take back one `pin`."""
        with self.disk.changing("unpinning a snapshot"):
            self.pins.take_away(frame)

    def is_pinned(self, frame: bytes) -> bool:
        """Whether this process has pinned a snapshot."""
        return self.pins.counts[frame] > 0

    def size(self) -> int:
        """Bytes in use."""
        self.disk.refresh()
        return self.disk.size

    def gc(self, drop_corrupt: bool) -> None:
        """Free what no snapshot needs, and what writers that died left behind."""
        with self.disk.changing("collecting garbage"):
            self.disk.reload()
            found = verifying.inspect(self.disk) if drop_corrupt else None
            if found is None and self.disk.index.damage:
                raise StoreCorruptError(
                    f"{self.disk.folder} is damaged: run `sandboxgym store verify` on it to see "
                    "what is lost, and `sandboxgym store gc --drop-corrupt` to keep the rest"
                )
            self.pins.all()
            rewriting.collect(self.disk, found.corrupt if found is not None else ())

    def verify(self) -> list[Fault]:
        """Read everything and name what is not as it should be."""
        with self.disk.changing("verifying"):
            self.disk.reload()
            return verifying.inspect(self.disk).faults

    def close(self) -> None:
        """Unpin everything."""
        if self.pins.in_use:
            with self.disk.changing("closing the store"):
                self.pins.close()
