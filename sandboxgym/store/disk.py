"""The blobs of a store on disk: a folder of packs that several processes use at once.

    store.json     the manifest: which packs count (`sandboxgym.store.manifest`)
    lock           held by whoever changes anything
    packs/N.pack   records, one after the other (`sandboxgym.store.record`); only the last grows
    pins/*         what running processes want to keep (`sandboxgym.store.pins`)

Writers take turns (`flock`, which the system frees when its holder dies). Readers take no lock: a
complete record never changes, and a pack that is rewritten gets a new name. What a writer that died
left behind is an incomplete record at the end of the last pack, which the next writer cuts off.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sandboxgym.core.errors import StoreCorruptError
from sandboxgym.store import manifest as manifests
from sandboxgym.store.blob import Blob, Kind
from sandboxgym.store.cache import BlobCache
from sandboxgym.store.durable import locked, naming_failures, sync_folder, write_all
from sandboxgym.store.index import PACK_MAGIC, Damage, Index, Place, scan
from sandboxgym.store.manifest import Manifest, Pack
from sandboxgym.store.record import MAX_HEADER, Base, Header, parse_header, read_blob, write_blob

MAX_DEPTH = 16


class Disk:
    """Reads and appends blobs; see `sandboxgym.store.rewriting` for what makes packs smaller."""

    def __init__(
        self, folder: Path, *, pack_bytes: int, cache_bytes: int, max_bytes: int, create: bool
    ) -> None:
        self.folder = folder
        self.packs = folder / "packs"
        self.pack_bytes = pack_bytes
        self.max_bytes = max_bytes
        self.cache = BlobCache(cache_bytes)
        self.index = Index()
        self.manifest: Manifest = manifests.EMPTY
        self._stamp: tuple[int, int, int] | None = None
        if create:
            self._create()
        self.refresh()

    def _create(self) -> None:
        with naming_failures(f"making the store {self.folder}"):
            self.packs.mkdir(parents=True, exist_ok=True)
            (self.folder / "pins").mkdir(exist_ok=True)
            (self.folder / "lock").touch()
            with locked(self.folder / "lock"):
                if (self.folder / manifests.NAME).exists():
                    return
                if any(self.packs.iterdir()):
                    raise StoreCorruptError(
                        f"{self.folder} has packs but no {manifests.NAME}: put back a copy of it"
                    )
                manifests.save(self.folder, manifests.EMPTY)
                sync_folder(self.folder.parent)

    def path(self, number: int) -> Path:
        """The file of a pack."""
        return self.packs / Pack(number).name

    @property
    def size(self) -> int:
        """Bytes of all packs, as last seen."""
        return sum(self.index.ends.values())

    @contextmanager
    def changing(self, doing: str) -> Iterator[None]:
        """Hold the store's lock, and know all that is in the store."""
        with naming_failures(f"{doing} in {self.folder}"), locked(self.folder / "lock"):
            self._bring_up_to_date(alone=True)
            yield

    def refresh(self) -> None:
        """Learn what others have added."""
        with naming_failures(f"reading {self.folder}"):
            try:
                complete = self._bring_up_to_date(alone=False)
            except FileNotFoundError:  # a pack was just rewritten, or is lost
                complete = False
            if not complete:
                with locked(self.folder / "lock"):
                    self._bring_up_to_date(alone=True)

    def _bring_up_to_date(self, *, alone: bool) -> bool:
        """Read what is new; False where somebody may be in the middle of writing it."""
        stamp = manifests.stamp(self.folder)
        if stamp != self._stamp:
            manifest = manifests.load(self.folder)
            known = [pack.number for pack in self.manifest.packs]
            if [pack.number for pack in manifest.packs][: len(known)] != known:
                self.index = Index(ticks=self.index.ticks)
            self.manifest = manifest
            self._stamp = stamp
        for pack in self.manifest.packs:
            if pack.bytes is None or self.index.ends.get(pack.number, 0) < pack.bytes:
                try:
                    if not self._read_end(pack, alone):
                        return False
                except FileNotFoundError:
                    if not alone:
                        raise
                    self._note_lost(pack, 0)
        return True

    def _read_end(self, pack: Pack, alone: bool) -> bool:
        index = self.index
        descriptor = os.open(self.path(pack.number), os.O_RDONLY | os.O_CLOEXEC)
        try:
            there = os.fstat(descriptor).st_size
            end = there if pack.bytes is None else min(there, pack.bytes)
            start = index.ends.setdefault(pack.number, 0)
            if end < start:  # a writer took back what it could not write in full
                self._forget()
                return self._bring_up_to_date(alone=alone)
            if start == 0:
                if os.pread(descriptor, len(PACK_MAGIC), 0) != PACK_MAGIC:
                    index.damage.append(Damage(pack.number, 0, len(PACK_MAGIC)))
                index.ends[pack.number] = start = min(len(PACK_MAGIC), end)
            for offset, found in scan(descriptor, start, end):
                if isinstance(found, Header):
                    index.note(pack.number, offset, found)
                elif pack.bytes is None and not alone:
                    return False
                else:
                    index.damage.append(Damage(pack.number, offset, found))
                    index.ends[pack.number] = offset + found
        finally:
            os.close(descriptor)
        self._note_lost(pack, index.ends[pack.number])
        return True

    def _note_lost(self, pack: Pack, end: int) -> None:
        """Note as damage what a closed pack should have and has not."""
        length = 0 if pack.bytes is None else pack.bytes
        if end < length:
            self.index.damage.append(Damage(pack.number, end, length - end))
        self.index.ends[pack.number] = max(end, length)

    def read(self, key: bytes, limit: int) -> Blob:
        """Read a blob whose content has at most `limit` bytes, and check it.

        Raises:
            StoreCorruptError: It is missing, damaged, or larger.
        """
        cached = self.cache.get(key)
        if cached is not None and len(cached.content) <= limit:
            return cached
        if key not in self.index.blobs:
            self.refresh()
        place = self._find(key)
        with naming_failures(f"reading {place.header.kind.name} {key.hex()} in {self.folder}"):
            blob = self._read_again(key, place, limit)
        self.cache.add(blob)
        return blob

    def _find(self, key: bytes) -> Place:
        place = self.index.blobs.get(key)
        if place is None:
            raise StoreCorruptError(
                f"the blob {key.hex()} is missing in {self.folder}: run `sandboxgym store verify "
                f"{self.folder}`"
            )
        return place

    def _read_again(self, key: bytes, place: Place, limit: int) -> Blob:
        """Read a blob; where it is not (any more) what the index says, look once more."""
        try:
            return self.read_at(place, limit)
        except (StoreCorruptError, FileNotFoundError):
            with locked(self.folder / "lock"):
                self.reload()
                return self.read_at(self._find(key), limit)

    def reload(self) -> None:
        """Read all packs anew. Only while `changing`."""
        self._forget()
        self._bring_up_to_date(alone=True)

    def _forget(self) -> None:
        self._stamp = None
        self.manifest = manifests.EMPTY
        self.index = Index(ticks=self.index.ticks)

    def read_at(self, place: Place, limit: int) -> Blob:
        """Read the blob of a record from its pack, and its bases before it.

        Raises:
            StoreCorruptError: The record, or one of its bases, is damaged.
            FileNotFoundError: The pack has gone.
        """
        descriptor = os.open(self.path(place.pack), os.O_RDONLY | os.O_CLOEXEC)
        try:
            limits = (limit, self.max_bytes)
            return _read_record(descriptor, place.offset, place.header, limits)
        except ValueError as error:
            name = f"{place.header.kind.name} {place.header.key.hex()}"
            raise StoreCorruptError(
                f"{name} in {self.path(place.pack)} at {place.offset} is damaged ({error}) and is "
                f"not used: put the snapshot again, or run `sandboxgym store gc --drop-corrupt "
                f"{self.folder}`"
            ) from error
        finally:
            os.close(descriptor)

    def stored_record(self, place: Place, back: int) -> bytes:
        """A record as it is stored, but with its base at another distance."""
        descriptor = os.open(self.path(place.pack), os.O_RDONLY | os.O_CLOEXEC)
        try:
            stored = os.pread(descriptor, place.header.stored, place.offset + place.header.length)
        finally:
            os.close(descriptor)
        return replace(place.header, back=back).to_bytes() + stored

    def records_of(self, blobs: list[Blob]) -> bytes:
        """The records of new blobs, as they would be appended now. Only while `changing`."""
        pack = self._pack_with_room()
        start = self.index.ends[pack.number]
        data = b""
        for blob in blobs:
            base = self.base(pack.number, blob.kind, len(blob.content))
            data += write_blob(blob, base, start + len(data))
        return data

    def append(self, records: bytes) -> None:
        """Add records, for good when this returns. Only while `changing`.

        Raises:
            OSError: They could not be written; nothing was added.
        """
        pack = self._pack_with_room()
        self._write(pack.number, self.index.ends[pack.number], records)
        self._read_end(pack, alone=True)

    def base(self, pack: int, kind: Kind, size: int) -> Base | None:
        """A content that a new one of this kind is likely to resemble: the last before it."""
        key = self.index.latest.get((pack, kind))
        place = self.index.blobs.get(key) if key else None
        if place is None or place.pack != pack or place.header.depth >= MAX_DEPTH:
            return None
        if place.header.size > max(4 * size, 2**16):
            return None
        try:
            blob = self.cache.get(place.header.key) or self.read_at(place, place.header.size)
        except StoreCorruptError:
            return None
        return Base(blob.content, place.header.depth, place.offset)

    def _pack_with_room(self) -> Pack:
        pack = self.manifest.open_pack
        if pack is not None and self.index.ends[pack.number] < self.pack_bytes:
            return pack
        end = self.index.ends[pack.number] if pack is not None else None
        self.write_pack(self.manifest.next, PACK_MAGIC)
        self.commit(self.manifest.with_open(end))
        opened = self.manifest.open_pack
        assert opened is not None
        self._read_end(opened, alone=True)
        return opened

    def write_pack(self, number: int, data: bytes) -> None:
        """Write a pack that the manifest does not name yet."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        descriptor = os.open(self.path(number), flags, 0o666)
        try:
            write_all(descriptor, data, 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_folder(self.packs)

    def commit(self, manifest: Manifest) -> None:
        """Make another set of packs the one that counts."""
        manifests.save(self.folder, manifest)
        self.manifest = manifest
        self._stamp = manifests.stamp(self.folder)

    def _write(self, number: int, start: int, data: bytes) -> None:
        descriptor = os.open(self.path(number), os.O_WRONLY | os.O_CLOEXEC)
        try:
            if os.fstat(descriptor).st_size != start:
                os.ftruncate(descriptor, start)  # a writer died in the middle of a record
            try:
                write_all(descriptor, data, start)
                os.fsync(descriptor)
            except BaseException:
                os.ftruncate(descriptor, start)
                raise
        finally:
            os.close(descriptor)


def _read_record(descriptor: int, offset: int, expected: Header, limits: tuple[int, int]) -> Blob:
    """Read a blob and the bases that it is written against.

    Args:
        descriptor: The pack.
        offset: Where the record begins.
        expected: The header that the index has for it.
        limits: How large the content may be, and how large that of a base.

    Raises:
        ValueError: Another record is there, or it is damaged.
    """
    header = parse_header(os.pread(descriptor, MAX_HEADER, offset))
    if header != expected:
        raise ValueError("another record is in its place")
    if header.depth > MAX_DEPTH:
        raise ValueError(f"it needs {header.depth} bases")
    chain = [(header, _stored(descriptor, offset, header, limits[0]))]
    while header.depth > 0:
        if not 0 < header.back <= offset:
            raise ValueError("its base lies outside of the pack")
        offset -= header.back
        base = parse_header(os.pread(descriptor, MAX_HEADER, offset))
        if base.depth != header.depth - 1:
            raise ValueError(f"its base needs {base.depth} bases, it {header.depth}")
        chain.append((base, _stored(descriptor, offset, base, limits[1])))
        header = base
    blob = read_blob(*chain.pop(), None)
    while chain:
        blob = read_blob(*chain.pop(), blob.content)
    return blob


def _stored(descriptor: int, offset: int, header: Header, limit: int) -> bytes:
    if header.size > limit:
        raise ValueError(f"it has {header.size} bytes, more than {limit}")
    if header.stored > header.size + header.size // 64 + 1024:
        raise ValueError(f"it takes {header.stored} bytes for {header.size}")
    return os.pread(descriptor, header.stored, offset + header.length)
