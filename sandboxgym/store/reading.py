"""Reading one blob from a pack: its record, and those of the bases that it is written against."""

from __future__ import annotations

import os

from sandboxgym.store.blob import Blob
from sandboxgym.store.cache import BlobCache
from sandboxgym.store.index import Place
from sandboxgym.store.record import MAX_HEADER, Header, parse_header, read_blob

MAX_DEPTH = 16
NO_BLOBS = BlobCache(0)


class TooLargeError(ValueError):
    """What a record declares is over the limit; it may be intact."""


def read_record(descriptor: int, place: Place, limits: tuple[int, int], known: BlobCache) -> Blob:
    """Read a blob and the bases that it is written against.

    Args:
        descriptor: The pack.
        place: What the index has for it.
        limits: How large the content may be, and how large that of a base.
        known: Blobs that need not be read to serve as a base.

    Raises:
        ValueError: Another record is there, or it is damaged.
    """
    offset = place.offset
    header = parse_header(os.pread(descriptor, MAX_HEADER, offset))
    if header != place.header:
        raise ValueError("another record is in its place")
    if header.depth > MAX_DEPTH:
        raise ValueError(f"it needs {header.depth} bases")
    chain = [(header, _stored(descriptor, offset, header, limits[0]))]
    blob = None
    while header.depth > 0 and blob is None:
        if not 0 < header.back <= offset:
            raise ValueError("its base lies outside of the pack")
        offset -= header.back
        base = parse_header(os.pread(descriptor, MAX_HEADER, offset))
        if base.depth != header.depth - 1:
            raise ValueError(f"its base needs {base.depth} bases, it {header.depth}")
        blob = known.get(base.key)
        if blob is None:
            chain.append((base, _stored(descriptor, offset, base, limits[1])))
        header = base
    for header, stored in reversed(chain):
        blob = read_blob(header, stored, blob.content if blob is not None else None)
    assert blob is not None
    return blob


def _stored(descriptor: int, offset: int, header: Header, limit: int) -> bytes:
    if header.size > limit:
        raise TooLargeError(f"of {header.size} bytes, only {limit} may be read")
    if header.stored > header.size + header.size // 64 + 1024:
        raise ValueError(f"it takes {header.stored} bytes for {header.size}")
    return os.pread(descriptor, header.stored, offset + header.length)
