"""The wire form of a record, which is all that a pack consists of after its first 8 bytes.

Integers are big-endian::

    2 bytes  magic b"SR"
    1 byte   kind (`sandboxgym.store.blob.Kind`)
    1 byte   form of the content (`sandboxgym.store.delta.Form`)
    1 byte   how many bases are needed to read the content, one after the other
    1 byte   number of links
    16 bytes key
    4 bytes  how far back in the pack the record of the base begins; 0 for none
    4 bytes  length of the stored content
    4 bytes  length of the content itself
    16 bytes for each link
    4 bytes  CRC-32 of all of the above
    ...      the stored content

The content is checked by its key, once it is read; the checksum makes sure that the records after
it can be found.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace

from sandboxgym.store.blob import KEY_BYTES, Blob, Kind
from sandboxgym.store.delta import Form, lengthen, shorten

MAGIC = b"SR"
MAX_LINKS = 8
MAX_CONTENT = 2**32 - 1

_HEAD = struct.Struct(">2sBBBB16sIII")
_CHECK = struct.Struct(">I")
MAX_HEADER = _HEAD.size + MAX_LINKS * KEY_BYTES + _CHECK.size


@dataclass(frozen=True, slots=True)
class Header:
    """All of a record but its content."""

    kind: Kind
    key: bytes
    links: tuple[bytes, ...] = ()
    form: Form = Form.ALONE
    depth: int = 0
    back: int = 0
    stored: int = 0
    size: int = 0

    @property
    def length(self) -> int:
        """Length of the header itself."""
        return _HEAD.size + len(self.links) * KEY_BYTES + _CHECK.size

    @property
    def total(self) -> int:
        """Length of the record."""
        return self.length + self.stored

    def to_bytes(self) -> bytes:
        """The header's wire form."""
        head = _HEAD.pack(
            MAGIC,
            self.kind,
            self.form,
            self.depth,
            len(self.links),
            self.key,
            self.back,
            self.stored,
            self.size,
        ) + b"".join(self.links)
        return head + _CHECK.pack(zlib.crc32(head))


@dataclass(frozen=True, slots=True)
class Base:
    """A blob in the same pack that a new one may be written against."""

    content: bytes
    depth: int
    offset: int


class IncompleteError(ValueError):
    """The bytes end before the header does."""


def parse_header(data: bytes) -> Header:
    """Read a header from the beginning of `data`.

    Raises:
        IncompleteError: There are too few bytes to tell.
        ValueError: These bytes are no header.
    """
    if not data.startswith(MAGIC[: len(data)]):
        raise ValueError("no record begins here")
    if len(data) < _HEAD.size:
        raise IncompleteError("the header is cut short")
    _, kind, form, depth, n_links, key, back, stored, size = _HEAD.unpack_from(data)
    end = _HEAD.size + n_links * KEY_BYTES
    if n_links > MAX_LINKS:
        raise ValueError(f"a record has {n_links} links")
    if len(data) < end + _CHECK.size:
        raise IncompleteError("the header is cut short")
    if _CHECK.unpack_from(data, end)[0] != zlib.crc32(data[:end]):
        raise ValueError("the header's checksum does not match")
    links = tuple(data[at : at + KEY_BYTES] for at in range(_HEAD.size, end, KEY_BYTES))
    return Header(Kind(kind), key, links, Form(form), depth, back, stored, size)


def note(kind: Kind, key: bytes, *links: bytes) -> bytes:
    """A record without content."""
    return Header(kind, key, links).to_bytes()


def write_blob(blob: Blob, base: Base | None, offset: int) -> bytes:
    """The record of a blob, to be written at an offset of the pack that its base is in."""
    form, short = shorten(blob.content, base.content if base else None)
    header = Header(blob.kind, blob.key, blob.links, stored=len(short), size=len(blob.content))
    if base is not None and form is not Form.ALONE:
        header = replace(header, form=form, depth=base.depth + 1, back=offset - base.offset)
    return header.to_bytes() + short


def read_blob(header: Header, stored: bytes, base: bytes | None) -> Blob:
    """The blob of a record.

    Raises:
        ValueError: It is not what was written.
    """
    content = lengthen(header.form, stored, header.size, base)
    blob = Blob.of(header.kind, content, header.links)
    if blob.key != header.key:
        raise ValueError(f"its content hashes to {blob.key.hex()}")
    return blob
