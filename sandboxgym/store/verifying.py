"""Reading all of a store on disk to find what is not as it was stored."""

from __future__ import annotations

from dataclasses import dataclass

from sandboxgym.core.errors import SnapshotCorruptError, StoreCorruptError
from sandboxgym.store.blob import Blob
from sandboxgym.store.disk import Disk
from sandboxgym.store.index import Damage
from sandboxgym.store.pieces import join
from sandboxgym.store.rewriting import needed
from sandboxgym.store.shelf import Fault


@dataclass(frozen=True)
class Findings:
    """What is wrong with a store: for people, and the keys of the blobs that cannot be used."""

    faults: list[Fault]
    corrupt: set[bytes]


def inspect(disk: Disk) -> Findings:
    """Read every blob, then put every snapshot together. Only while `disk.changing`."""
    faults = [_damage(disk, damage) for damage in disk.index.damage]
    reasons = _unreadable_blobs(disk)
    users: dict[bytes, list[str]] = {key: [] for key in reasons}
    corrupt = set(reasons)
    for frame in list(disk.index.entries):
        problems = _problems(disk, frame, reasons)
        for key, reason in problems.items():
            reasons.setdefault(key, reason)
            users.setdefault(key, []).append(frame.hex())
        fault = None if problems else _cannot_be_joined(disk, frame)
        if fault is not None:
            corrupt.add(frame)
            faults.append(Fault(f"FRAME {frame.hex()}", fault, (frame.hex(),)))
    faults += [Fault(_name(disk, key), why, tuple(users[key])) for key, why in reasons.items()]
    return Findings(faults, corrupt)


def _damage(disk: Disk, damage: Damage) -> Fault:
    return Fault(
        str(disk.path(damage.pack)),
        f"{damage.length} bytes from {damage.offset} on are no records",
    )


def _unreadable_blobs(disk: Disk) -> dict[bytes, str]:
    reasons: dict[bytes, str] = {}
    for key, place in disk.index.blobs.items():
        try:
            disk.read_at(place, disk.max_bytes)
        except (StoreCorruptError, OSError) as error:
            reasons[key] = str(error.__cause__ or error)
    return reasons


def _problems(disk: Disk, frame: bytes, reasons: dict[bytes, str]) -> dict[bytes, str]:
    """The blobs that a snapshot needs and that cannot be used, each with the reason."""
    keys = needed(disk.index, frame)
    state = disk.index.state_of(frame)
    if state is not None and (state in disk.index.blobs or state not in disk.index.dropped):
        keys.add(state)
    missing = {key: "it is missing" for key in keys if key not in disk.index.blobs}
    return missing | {key: reasons[key] for key in keys if key in reasons}


def _cannot_be_joined(disk: Disk, frame: bytes) -> str | None:
    state = disk.index.state_of(frame)

    def read(key: bytes, limit: int) -> Blob:
        return disk.cache.get(key) or disk.read_at(disk.index.blobs[key], limit)

    try:
        join(frame, state if state in disk.index.blobs else None, read, disk.max_bytes)
    except (SnapshotCorruptError, StoreCorruptError) as error:
        return str(error)
    return None


def _name(disk: Disk, key: bytes) -> str:
    place = disk.index.blobs.get(key)
    return f"{place.header.kind.name if place else 'blob'} {key.hex()}"
