"""What is where in a store's packs, kept in memory and brought up to date by reading their ends."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from sandboxgym.store.blob import BLOBS, Kind
from sandboxgym.store.record import MAGIC, MAX_HEADER, Header, IncompleteError, parse_header

PACK_MAGIC = b"SGPACK1\n"
_RESYNC_BYTES = 2**20
_LIKE_A_HEADER = re.compile(re.escape(MAGIC) + rb"(?=[\x01-\x06][\x00-\x02])")


@dataclass(frozen=True, slots=True)
class Place:
    """A record in a pack."""

    pack: int
    offset: int
    header: Header


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a pack that holds no records."""

    pack: int
    offset: int
    length: int


@dataclass
class Index:
    """Maps keys to places. Later records win over earlier ones.

    Attributes:
        blobs: Place of each blob.
        entries: Place of the note that the store has a snapshot, by the key of its frame.
        dropped: States that were dropped.
        latest: The last blob of each kind in each pack, as a base for the next.
        ends: How far each pack was read.
        damage: Parts of packs that hold no records.
        ticks: When each state was added or used, as far as this process saw it.
    """

    blobs: dict[bytes, Place] = field(default_factory=dict)
    entries: dict[bytes, Place] = field(default_factory=dict)
    dropped: set[bytes] = field(default_factory=set)
    latest: dict[tuple[int, Kind], bytes] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    damage: list[Damage] = field(default_factory=list)
    ticks: dict[bytes, int] = field(default_factory=dict)
    _tick: int = 0

    def note(self, pack: int, offset: int, header: Header) -> None:
        """Take in one record."""
        if header.kind in BLOBS:
            self.blobs[header.key] = Place(pack, offset, header)
            self.latest[pack, header.kind] = header.key
            if header.kind is Kind.STATE:
                self.use(header.key)
        elif header.kind is Kind.ENTRY:
            self.entries[header.key] = Place(pack, offset, header)
        elif header.kind is Kind.REMOVED:
            self.entries.pop(header.key, None)
        else:
            self.dropped.add(header.key)
        self.ends[pack] = offset + header.total

    def use(self, state: bytes) -> None:
        """Remember that a state was used just now."""
        self._tick += 1
        self.ticks[state] = self._tick

    def state_of(self, frame: bytes) -> bytes | None:
        """The state that a snapshot was stored with, whether or not it is still there."""
        links = self.entries[frame].header.links
        return links[0] if links else None


def scan(descriptor: int, start: int, end: int) -> Iterator[tuple[int, Header | int]]:
    """The records of a pack between two offsets, as pairs (offset, header).

    Where bytes are no record, their number takes the header's place. Ends before a record that is
    not complete.
    """
    offset = start
    while offset < end:
        try:
            header = parse_header(os.pread(descriptor, min(MAX_HEADER, end - offset), offset))
        except IncompleteError:
            return
        except ValueError:
            length = _to_next_record(descriptor, offset, end) - offset
            yield offset, length
            offset += length
            continue
        if offset + header.total > end:
            return
        yield offset, header
        offset += header.total


def _to_next_record(descriptor: int, offset: int, end: int) -> int:
    """Where the next intact header begins after damage, or the end."""
    at = offset + 1
    while at < end:
        window = os.pread(descriptor, _RESYNC_BYTES + MAX_HEADER, at)
        for candidate in _LIKE_A_HEADER.finditer(window, 0, _RESYNC_BYTES):
            found = candidate.start()
            try:
                parse_header(window[found : found + MAX_HEADER])
            except ValueError:
                continue
            return at + found
        at += _RESYNC_BYTES
    return end
