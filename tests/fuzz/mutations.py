"""Changes to files and packs that get past their checksums, to what lies behind them."""

from __future__ import annotations

import hashlib
import math
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import zstandard

from sandboxgym.store.blob import BLOBS, Blob, Kind
from sandboxgym.store.index import PACK_MAGIC
from sandboxgym.store.record import MAX_HEADER, Base, Header, parse_header, read_blob, write_blob

FILE_HEADER = struct.Struct(">8sHQQ16s")
MAX_BODY = 2**20
EXTENSIONS = range(-1, 8)

# msgpack: the heads of huge, deep or odd things
HEADS = [
    b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xdc\xff\xff", b"\xc6\xff\xff\xff\xff",
    b"\xdb\xff\xff\xff\xff", b"\xc9\xff\xff\xff\xff\x02", b"\xc1", b"\x90" * 50, b"\x80" * 50,
    b"\x91" * 200, b"\x81\xa1a" * 200, b"\xc7\x00\x02", b"\xd4\x01\x90", b"\xca\x7f\xc0\x00\x00",
    b"\xcf" + b"\xff" * 8, b"\xd3\x80" + b"\x00" * 7, b"\xd6\xff\x00\x00\x00\x00",
]  # fmt: skip
DTYPES = ["|O", "<f8", ">U4", "|S9999999", "<m8[ns]", "<V8", "|b1", "<f16", "<c32", "", "<i3"]


def seal(body: bytes, dice: random.Random) -> bytes:
    """A snapshot file with this body, its lengths and its checksum in order."""
    packed = zstandard.ZstdCompressor(level=1).compress(body)
    check = hashlib.blake2b(packed, digest_size=16).digest()
    return FILE_HEADER.pack(b"SGSNAP\r\n", 1, len(body), len(packed), check) + packed


def body_of(file: bytes) -> bytes | None:
    """The body of a snapshot file, if it has one that can be decompressed."""
    try:
        packed = file[FILE_HEADER.size :]
        if not 0 <= zstandard.get_frame_parameters(packed).content_size <= MAX_BODY:
            return None
        return zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError:
        return None


def mutate_file(file: bytes, dice: random.Random) -> bytes:
    """Another snapshot file, with something in it changed."""
    body = body_of(file)
    if body is None or dice.random() < 0.1:
        return mutate_bytes(file, dice)
    return seal(mutate_document(body, dice), dice)


def mutate_document(body: bytes, dice: random.Random) -> bytes:
    """Another msgpack document, which may or may not be one still."""
    for _ in range(dice.choice((1, 1, 2, 4))):
        body = dice.choice((mutate_bytes, mutate_bytes, _change_a_value, _change_a_value))(
            body, dice
        )
    return body[:MAX_BODY]


def mutate_bytes(data: bytes, dice: random.Random) -> bytes:
    """Flip, cut, double, insert or overwrite some bytes."""
    at = dice.randrange(len(data) + 1)
    end = min(len(data), at + dice.choice((1, 2, 4, 16, 200)))
    return dice.choice(
        (
            lambda: (
                data[:at] + bytes(b ^ 1 << dice.randrange(8) for b in data[at:end]) + data[end:]
            ),
            lambda: data[:at],
            lambda: data[:at] + data[end:],
            lambda: data[:end] + data[at:],
            lambda: data[:at] + dice.choice(HEADS) + data[at:],
            lambda: data[:at] + dice.choice(HEADS) + data[end:],
            lambda: data[:at] + dice.randbytes(end - at) + data[end:],
        )
    )()


def _change_a_value(body: bytes, dice: random.Random) -> bytes:
    """Put something else in the place of one value of a document."""
    try:
        tree = msgspec.msgpack.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return mutate_bytes(body, dice)
    try:
        return msgspec.msgpack.encode(_with_change(tree, dice))
    except (TypeError, ValueError, RecursionError):
        return mutate_bytes(body, dice)


def _with_change(tree: object, dice: random.Random) -> object:
    if isinstance(tree, dict) and tree and dice.random() < 0.9:
        key = dice.choice(list(tree))
        if dice.random() < 0.1:
            return {k: v for k, v in tree.items() if k != key}
        return tree | {key: _with_change(tree[key], dice)}
    if isinstance(tree, list) and tree and dice.random() < 0.9:
        at = dice.randrange(len(tree))
        return [*tree[:at], _with_change(tree[at], dice), *tree[at + 1 :]]
    if isinstance(tree, msgspec.msgpack.Ext) and dice.random() < 0.8:
        return msgspec.msgpack.Ext(tree.code, mutate_document(bytes(tree.data), dice))
    return _something(tree, dice)


def _something(old: object, dice: random.Random) -> object:
    array = [
        dice.choice(DTYPES),
        [dice.choice((0, 1, 3, 2**40, -1)) for _ in range(dice.randrange(4))],
        dice.randbytes(dice.randrange(20)),
    ]
    shape = dice.choice(([0], [2], [1, 1], [3, 1], []))
    whole = ["<i8", shape, bytes(8 * math.prod(shape))]
    choices: list[Callable[[], object]] = [
        lambda: msgspec.msgpack.Ext(2, msgspec.msgpack.encode(whole)),
        lambda: msgspec.msgpack.Ext(3, msgspec.msgpack.encode(["<f4", bytes(4)])),
        lambda: None,
        lambda: dice.choice((0, -1, 2**63, 1.5, float("nan"), True)),
        lambda: dice.choice(("", "x" * 1000, "PCG64", "\0")),
        lambda: dice.randbytes(dice.randrange(40)),
        lambda: [old, old],
        lambda: {"x": old},
        lambda: [[]] * 2000,
        lambda: msgspec.msgpack.Ext(dice.choice(EXTENSIONS), msgspec.msgpack.encode(array)),
        lambda: msgspec.msgpack.Ext(dice.choice(EXTENSIONS), msgspec.msgpack.encode(old)),
        lambda: msgspec.msgpack.Ext(dice.choice(EXTENSIONS), dice.randbytes(9)),
    ]
    return dice.choice(choices)()


@dataclass(frozen=True)
class _Record:
    header: Header
    blob: Blob | None


def mutate_pack(pack: bytes, dice: random.Random) -> bytes:
    """Another pack, with something in it changed; most often with all hashes in order."""
    records = _records_of(pack)
    if not records or dice.random() < 0.15:
        return mutate_bytes(pack, dice)
    at = dice.randrange(len(records))
    changed = records[at]
    renamed: dict[bytes, bytes] = {}
    if changed.blob is not None and dice.random() < 0.6:
        content = mutate_document(changed.blob.content, dice)
        records[at] = replace(changed, blob=replace(changed.blob, content=content))
    elif dice.random() < 0.3:
        records = dice.choice((records[:at], records[at:], records[:at] + records[at + 1 :]))
    elif dice.random() < 0.3:
        records.insert(dice.randrange(len(records)), changed)
    else:
        records[at] = replace(changed, header=_other_header(changed.header, records, dice))
    return _pack_of(records, renamed, dice)


def _records_of(pack: bytes) -> list[_Record]:
    """The intact records of a pack, up to the first that is not."""
    records: list[_Record] = []
    contents: dict[int, bytes] = {}
    offset = len(PACK_MAGIC)
    while offset < len(pack):
        try:
            header = parse_header(pack[offset : offset + MAX_HEADER])
            blob = None
            if header.kind in BLOBS and header.size <= MAX_BODY:
                stored = pack[offset + header.length : offset + header.total]
                base = contents[offset - header.back] if header.depth else None
                blob = read_blob(header, stored, base)
                contents[offset] = blob.content
        except (ValueError, KeyError):
            break
        records.append(_Record(header, blob))
        offset += header.total
    return records


def _other_header(header: Header, records: list[_Record], dice: random.Random) -> Header:
    other = dice.choice(records).header
    return dice.choice(
        (
            replace(header, key=other.key),
            replace(header, kind=dice.choice(list(Kind))),
            replace(header, links=(*header.links, other.key)[:8]),
            replace(header, links=(other.key,)),
            replace(header, links=()),
            replace(header, links=(header.key,)),
            replace(header, size=dice.choice((0, 1, 2**20, 2**32 - 1))),
            replace(header, back=dice.choice((1, 8, 2**31))),
            replace(header, depth=dice.choice((0, 1, 17, 255))),
        )
    )


def _pack_of(records: list[_Record], renamed: dict[bytes, bytes], dice: random.Random) -> bytes:
    """A pack of these records, each blob under the hash that it now has."""
    pack = bytearray(PACK_MAGIC)
    last: dict[Kind, Base] = {}
    for record in records:
        links = tuple(renamed.get(link, link) for link in record.header.links)
        if record.blob is None or record.blob.kind is not record.header.kind:
            key = renamed.get(record.header.key, record.header.key)
            pack += replace(record.header, key=key, links=links, stored=0).to_bytes()
            continue
        blob = Blob.of(record.blob.kind, record.blob.content, links)
        renamed[record.blob.key] = blob.key
        base = last.get(blob.kind) if dice.random() < 0.5 else None
        offset = len(pack)
        written = write_blob(blob, base, offset)
        header = parse_header(written)
        if header.depth < 15:
            last[blob.kind] = Base(blob.content, header.depth, offset)
        if record.header.size != len(record.blob.content) and dice.random() < 0.5:
            lying = replace(header, size=record.header.size)
            written = lying.to_bytes() + written[header.length :]
        pack += written
    return bytes(pack)
