"""How much memory a msgpack document would take, found out before it is decoded.

One byte of msgpack can become an empty dict of 64 bytes, and an extension type inside another is
copied once a level. A small file could therefore fill the memory. (msgpack specification:
https://github.com/msgpack/msgpack/blob/master/spec.md)
"""

from __future__ import annotations

from collections.abc import Collection

MAX_NODES = 500_000
MAX_LEVELS = 250

_SIZED = {  # first byte: bytes of the length that follows
    0xC4: 1, 0xC5: 2, 0xC6: 4,  # bin
    0xD9: 1, 0xDA: 2, 0xDB: 4,  # str
}  # fmt: skip
_FIXED = {
    0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8,  # nil, bool, float
    0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8,  # int
}  # fmt: skip
_LISTS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}
_FIXED_EXT = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_EXT = {0xC7: 1, 0xC8: 2, 0xC9: 4}


def check_size(data: bytes, containers: Collection[int], max_nodes: int = MAX_NODES) -> int:
    """Refuse a document that would decode to far more than its own size.

    Args:
        data: The document.
        containers: Codes of the extension types that hold a document themselves.
        max_nodes: How many values it may have.

    Returns:
        How many values it has.

    Raises:
        ValueError: It has more than `max_nodes` values, or nests more than `MAX_LEVELS` extension
            types, or these would be copied to more than four times its size (and a MiB).
    """
    allowance = 4 * len(data) + 2**20
    nodes = 0
    pending = [(0, len(data), 0)]
    while pending:
        at, end, level = pending.pop()
        while at < end:
            nodes += 1
            if nodes > max_nodes:
                raise ValueError(f"the data has more than {max_nodes:,} values")
            at, inner = _next(data, at)
            if inner is None:
                continue
            code, start = inner
            allowance -= at - start
            if allowance < 0 or level == MAX_LEVELS:
                raise ValueError("the data nests too much in itself")
            if code in containers:
                pending.append((start, min(at, end), level + 1))
    return nodes


def _next(data: bytes, at: int) -> tuple[int, tuple[int, int] | None]:
    """Where the next value begins; the code and start of an extension type's content."""
    first = data[at]
    at += 1
    if first < 0x80 or first >= 0xE0 or first < 0xA0 or first in _LISTS or first in _MAPS:
        # a small int, or the head of a list or map whose members follow as values of their own
        return at + _LISTS.get(first, _MAPS.get(first, 0)), None
    if first < 0xC0:  # a short str
        return at + (first & 0x1F), None
    if first in _FIXED:
        return at + _FIXED[first], None
    if first in _SIZED:
        return at + _SIZED[first] + _length(data, at, _SIZED[first]), None
    if first in _FIXED_EXT:
        return at + 1 + _FIXED_EXT[first], (_code(data, at), at + 1)
    if first in _EXT:
        width = _EXT[first]
        start = at + width + 1
        return start + _length(data, at, width), (_code(data, at + width), start)
    raise ValueError(f"0x{first:02x} begins no msgpack value")


def _length(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width], "big")


def _code(data: bytes, at: int) -> int:
    return data[at] if at < len(data) else -1
