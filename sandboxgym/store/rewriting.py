"""Making a store's packs smaller: dropping states for the budget, and collecting what is unused.

A pack is never changed but written anew under the next number, whole and in order, and then takes
the place of the old one by a new manifest. All of this happens while the store's lock is held.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from sandboxgym.core.errors import StoreCorruptError
from sandboxgym.store.blob import BLOBS, Kind
from sandboxgym.store.disk import MAX_DEPTH, Disk
from sandboxgym.store.index import PACK_MAGIC, Index, Place, scan
from sandboxgym.store.manifest import Pack
from sandboxgym.store.record import Base, Header, note, parse_header, write_blob


def live_blobs(index: Index) -> set[bytes]:
    """All blobs that the snapshots in the store need."""
    live: set[bytes] = set()
    for frame, entry in index.entries.items():
        _add_needed(index, [frame, *entry.header.links], live)
    return live


def needed(index: Index, frame: bytes) -> set[bytes]:
    """The blobs that a snapshot cannot do without: its frame and the blocks of its recipe."""
    keys: set[bytes] = set()
    _add_needed(index, [frame], keys)
    return keys


def _add_needed(index: Index, pending: list[bytes], keys: set[bytes]) -> None:
    while pending:
        key = pending.pop()
        if key not in keys:
            keys.add(key)
            if key in index.blobs:
                pending += index.blobs[key].header.links


def least_recently_used(index: Index, pinned: Collection[bytes]) -> Iterator[Place]:
    """The states that may be dropped, the one that was not used for longest first."""
    for state in sorted(index.ticks, key=index.ticks.__getitem__):
        if state in index.blobs and state not in pinned:
            yield index.blobs[state]


def make_room(disk: Disk, need: int, budget: int, pinned: Collection[bytes]) -> None:
    """Collect what is unused and drop states until `need` more bytes fit.

    A quarter of the budget is made free beyond that, so that not every snapshot has all packs
    rewritten. Where little can be dropped, because it is recipes that fill the budget, the store
    grows beyond it.
    """
    index = disk.index
    live = live_blobs(index)
    unused = [place for key, place in index.blobs.items() if key not in live]
    size = disk.size - sum(place.header.total for place in unused)
    victims: list[Place] = []
    for place in least_recently_used(index, pinned):
        if size <= budget * 3 // 4 - need:
            break
        if place.header.key in live:
            size -= place.header.total
            victims.append(place)
    if disk.size - size < disk.size // 8:
        return
    packs = {place.pack for place in unused + victims}
    dropped = {place.header.key for place in victims}
    _rewrite_all(
        disk, [p for p in disk.manifest.packs if p.number in packs], live - dropped, dropped
    )


def collect(disk: Disk, corrupt: Collection[bytes] = ()) -> None:
    """Rewrite the packs that hold what no snapshot needs, and remove files that do not count.

    Args:
        disk: The store.
        corrupt: Blobs to do without. A state is noted as dropped; the snapshots that need another
            blob are removed.
    """
    index = disk.index
    for frame in [frame for frame in index.entries if _is_broken(index, frame, corrupt)]:
        del index.entries[frame]
    live = live_blobs(index) - set(corrupt)
    wasteful = [pack for pack in disk.manifest.packs if _is_wasteful(disk, pack, live)]
    _rewrite_all(disk, wasteful, live, set(corrupt), tidy=True)
    states = {state for frame in disk.index.entries if (state := disk.index.state_of(frame))}
    lost = states - set(disk.index.blobs) - disk.index.dropped
    if lost:
        disk.append(b"".join(note(Kind.DROPPED, state) for state in lost))
    named = {pack.name for pack in disk.manifest.packs}
    for path in [*disk.packs.iterdir(), *disk.folder.glob("*.tmp")]:
        if path.name not in named:
            path.unlink()


def _is_broken(index: Index, frame: bytes, corrupt: Collection[bytes]) -> bool:
    return any(key in corrupt or key not in index.blobs for key in needed(index, frame))


def _is_wasteful(disk: Disk, pack: Pack, live: Collection[bytes]) -> bool:
    if any(damage.pack == pack.number for damage in disk.index.damage):
        return True
    return any(
        not _counts(disk.index, Place(pack.number, offset, header), live)
        for offset, header in records(disk, pack)
    )


def records(disk: Disk, pack: Pack) -> Iterator[tuple[int, Header]]:
    """The intact records of a pack."""
    end = disk.index.ends[pack.number]
    try:
        descriptor = os.open(disk.path(pack.number), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # noted as damage
        return
    try:
        for offset, found in scan(descriptor, min(len(PACK_MAGIC), end), end):
            if isinstance(found, Header):
                yield offset, found
    finally:
        os.close(descriptor)


def _counts(index: Index, place: Place, live: Collection[bytes]) -> bool:
    """Whether a record says something that no other says, and that matters."""
    key = place.header.key
    if place.header.kind in BLOBS:
        return key in live and index.blobs.get(key) == place
    if place.header.kind is Kind.ENTRY:
        return index.entries.get(key) == place
    if place.header.kind is Kind.DROPPED:
        return key in live and key not in index.blobs
    return False  # what it removed is earlier in the packs, and has gone before


@dataclass
class _NewPack:
    """A pack in the making."""

    data: bytearray = field(default_factory=lambda: bytearray(PACK_MAGIC))
    moved: dict[int, int] = field(default_factory=dict)
    latest: dict[Kind, Base] = field(default_factory=dict)


def _rewrite_all(
    disk: Disk,
    packs: list[Pack],
    keep: Collection[bytes],
    dropped: Collection[bytes],
    *,
    tidy: bool = False,
) -> None:
    """Write packs anew, oldest first, with those of their blobs that are in `keep`.

    Args:
        disk: The store.
        packs: The packs.
        keep: Keys of blobs.
        dropped: States to note as dropped.
        tidy: Leave out notes that are out of date.
    """
    try:
        for pack in packs:
            data = _rewritten(disk, pack, keep, dropped, tidy)
            if data:
                disk.write_pack(disk.manifest.next, data)
            disk.commit(disk.manifest.with_rewritten(pack.number, len(data)))
            disk.path(pack.number).unlink(missing_ok=True)
    finally:
        disk.reload()


def _rewritten(
    disk: Disk, pack: Pack, keep: Collection[bytes], dropped: Collection[bytes], tidy: bool
) -> bytes:
    new = _NewPack()
    for offset, header in records(disk, pack):
        place = Place(pack.number, offset, header)
        if header.kind not in BLOBS:
            if not tidy or _counts(disk.index, place, keep):
                new.data += header.to_bytes()
        elif _counts(disk.index, place, keep):
            _move(disk, place, new)
        elif header.kind is Kind.STATE and header.key in dropped:
            new.data += note(Kind.DROPPED, header.key)
    return bytes(new.data) if len(new.data) > len(PACK_MAGIC) else b""


def _move(disk: Disk, place: Place, new: _NewPack) -> None:
    """Add a blob to a new pack: as it is stored where its base came along, else written anew."""
    header = place.header
    to = len(new.data)
    base_from = place.offset - header.back
    if header.depth == 0 or base_from in new.moved:
        back = to - new.moved[base_from] if header.depth else 0
        new.data += disk.stored_record(place, back)
    else:
        try:
            blob = disk.read_at(place, disk.max_bytes)
        except StoreCorruptError:
            if header.kind is not Kind.STATE:
                raise
            new.data += note(Kind.DROPPED, header.key)
            return
        record = write_blob(blob, new.latest.get(header.kind), to)
        depth = parse_header(record).depth
        if depth < MAX_DEPTH:
            new.latest[header.kind] = Base(blob.content, depth, to)
        new.data += record
    new.moved[place.offset] = to
