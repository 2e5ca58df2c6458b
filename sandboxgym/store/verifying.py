"""Reading all of a store on disk to find what is not as it was stored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sandboxgym.core.errors import SnapshotCorruptError, StoreCorruptError
from sandboxgym.store.blob import Blob
from sandboxgym.store.cache import BlobCache
from sandboxgym.store.disk import Disk
from sandboxgym.store.index import Damage
from sandboxgym.store.pieces import join
from sandboxgym.store.rewriting import needed
from sandboxgym.store.shelf import Fault

_CACHE_BYTES = 2**26


@dataclass(frozen=True)
class Findings:
    """What is wrong with a store: for people, and the keys of the blobs that cannot be used."""

    faults: list[Fault]
    corrupt: set[bytes]


def inspect(disk: Disk) -> Findings:
    """Read every blob, then put every snapshot together. Only while `disk.changing`.

    Where a snapshot cannot be put together from intact blobs, the state is at fault if it can be
    without.
    """
    faults = [_damage(disk, damage) for damage in disk.index.damage]
    read = BlobCache(_CACHE_BYTES)  # what is in the store's own cache may be gone on disk
    reasons = _unreadable_blobs(disk, read)
    users: dict[bytes, list[str]] = {}
    for frame in list(disk.index.entries):
        reasons |= _missing_blobs(disk, frame)
        wrong = _wrong_blob(disk, frame, reasons, read)
        if wrong is not None:
            reasons.setdefault(*wrong)
        for key in reasons.keys() & _parts(disk, frame):
            users.setdefault(key, []).append(frame.hex())
    faults += [
        Fault(_name(disk, key), why, tuple(users.get(key, ()))) for key, why in reasons.items()
    ]
    return Findings(faults, set(reasons))


def _damage(disk: Disk, damage: Damage) -> Fault:
    return Fault(
        str(disk.path(damage.pack)),
        f"{damage.length} bytes from {damage.offset} on are no records",
    )


def _unreadable_blobs(disk: Disk, read: BlobCache) -> dict[bytes, str]:
    reasons: dict[bytes, str] = {}
    for key, place in disk.index.blobs.items():
        try:
            read.add(disk.read_at(place, disk.max_bytes, read))
        except (StoreCorruptError, OSError) as error:
            reasons[key] = str(error.__cause__ or error)
    return reasons


def _parts(disk: Disk, frame: bytes) -> set[bytes]:
    """The blobs that a snapshot should have: what it needs, and its state unless dropped."""
    index = disk.index
    keys = needed(index, frame)
    state = index.state_of(frame)
    if state is not None and (state in index.blobs or state not in index.dropped):
        keys.add(state)
    return keys


def _missing_blobs(disk: Disk, frame: bytes) -> dict[bytes, str]:
    missing = _parts(disk, frame) - disk.index.blobs.keys()
    return dict.fromkeys(missing, "it is missing")


def _wrong_blob(
    disk: Disk, frame: bytes, unusable: Collection[bytes], read: BlobCache
) -> tuple[bytes, str] | None:
    """A blob that is intact but cannot be what was stored, with the reason."""
    if not needed(disk.index, frame).isdisjoint(unusable):
        return None
    reason = _cannot_be_joined(disk, frame, None, read)
    if reason is not None:
        return frame, reason
    state = disk.index.state_of(frame)
    if state is None or state in unusable or state not in disk.index.blobs:
        return None
    reason = _cannot_be_joined(disk, frame, state, read)
    return None if reason is None else (state, reason)


def _cannot_be_joined(disk: Disk, frame: bytes, state: bytes | None, read: BlobCache) -> str | None:
    def read_blob(key: bytes, limit: int) -> Blob:
        return read.get(key) or disk.read_at(disk.index.blobs[key], limit, read)

    try:
        join(frame, state, read_blob, disk.max_bytes)
    except (SnapshotCorruptError, StoreCorruptError) as error:
        return str(error)
    return None


def _name(disk: Disk, key: bytes) -> str:
    place = disk.index.blobs.get(key)
    return f"{place.header.kind.name if place else 'blob'} {key.hex()}"
