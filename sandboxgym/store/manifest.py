"""The manifest of a store's directory: which packs count, in which order.

Replacing it is the moment at which a change to the set of packs happens. A pack that it does not
name is left over from a change that was not finished, and counts for nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from sandboxgym.core.errors import StoreCorruptError, StoreError
from sandboxgym.store.durable import write_file

FORMAT = 1
NAME = "store.json"
MAX_BYTES = 2**24


class Pack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One pack: its number, and its length once nothing more is added to it."""

    number: int
    bytes: int | None = None

    @property
    def name(self) -> str:
        """Its file's name in the folder `packs`."""
        return f"{self.number:08d}.pack"


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The packs, oldest first; only the last may be open. `next` is a number never used."""

    format: int
    next: int
    packs: tuple[Pack, ...]

    @property
    def open_pack(self) -> Pack | None:
        """The pack that records are added to."""
        last = self.packs[-1] if self.packs else None
        return last if last is not None and last.bytes is None else None

    def with_open(self, sealed_bytes: int | None) -> Manifest:
        """With the open pack, if there is one, closed at this length, and a new one open."""
        packs = self.packs
        if self.open_pack is not None:
            packs = (*packs[:-1], Pack(self.open_pack.number, sealed_bytes))
        return Manifest(self.format, self.next + 1, (*packs, Pack(self.next)))

    def with_rewritten(self, number: int, new_bytes: int | None) -> Manifest:
        """With the next number in the place of pack `number`; without it for 0 bytes."""
        packs: list[Pack] = []
        for pack in self.packs:
            if pack.number != number:
                packs.append(pack)
            elif new_bytes:
                packs.append(Pack(self.next, None if pack.bytes is None else new_bytes))
        return Manifest(self.format, self.next + 1, tuple(packs))


EMPTY = Manifest(FORMAT, 1, ())


def save(folder: Path, manifest: Manifest) -> None:
    """Replace a store's manifest, for good when this returns."""
    write_file(folder / NAME, msgspec.json.encode(manifest) + b"\n")


def load(folder: Path) -> Manifest:
    """Read a store's manifest.

    Raises:
        StoreError: There is none, or one of another format.
        StoreCorruptError: It is damaged.
        OSError: It cannot be read.
    """
    path = folder / NAME
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise StoreError(f"{folder} is not a snapshot store: it has no {NAME}") from None
    try:
        if len(data) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        manifest = msgspec.json.decode(data, type=Manifest)
        if manifest.format == FORMAT:
            _check(manifest)
    except (msgspec.DecodeError, ValueError) as error:
        raise StoreCorruptError(
            f"{path} is damaged ({error}): put back a copy of it; the packs beside it are as they "
            "were"
        ) from error
    if manifest.format != FORMAT:
        raise StoreError(
            f"{folder} is a store of format {manifest.format}, this release reads {FORMAT}"
        )
    return manifest


def stamp(folder: Path) -> tuple[int, int, int]:
    """Changes whenever the manifest does."""
    status = os.stat(folder / NAME)  # noqa: PTH116 - called for every look-up
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def _check(manifest: Manifest) -> None:
    numbers = [pack.number for pack in manifest.packs]
    if len(set(numbers)) != len(numbers) or not all(0 < n < manifest.next for n in numbers):
        raise ValueError("the numbers of its packs are not those of a manifest")
    if any(pack.bytes is None or pack.bytes < 0 for pack in manifest.packs[:-1]):
        raise ValueError("a pack before the last has no length")
