"""Plain data as bytes: msgpack with tags for what msgpack does not know.

Tuples, numpy arrays and scalars, arrays of other frameworks, big integers and dicts with int keys
travel as msgpack extension types, so that decoding gives back exactly the types that went in.
Decoding runs no code from the data and refuses what does not fit; it never sees pickle. (msgpack
specification:
https://github.com/msgpack/msgpack/blob/master/spec.md)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from sandboxgym.core.errors import SnapshotCorruptError, StateEncodingError
from sandboxgym.core.msgpack_size import MAX_NODES, check_size
from sandboxgym.core.plain import ARRAY_KINDS, FRAMEWORKS, TensorData, owned

_TUPLE, _ARRAY, _SCALAR, _BIG_INT, _INT_KEYED, _TENSOR = 1, 2, 3, 4, 5, 6
CONTAINER_CODES = frozenset({_TUPLE, _ARRAY, _SCALAR, _INT_KEYED, _TENSOR})

_pack = msgspec.msgpack.Encoder().encode
_pack_sorted = msgspec.msgpack.Encoder(order="deterministic").encode


def encode(tree: Any, *, canonical: bool = False) -> bytes:
    """Encode plain data.

    Args:
        tree: Plain data (see `sandboxgym.core.plain`).
        canonical: Sort dict keys, so that equal data gives equal bytes in any process.

    Raises:
        StateEncodingError: `tree` holds something that is not plain data.
    """
    pack = _pack_sorted if canonical else _pack
    try:
        return pack(_tagged(tree, pack))
    except (_UntaggedError, RecursionError, UnicodeEncodeError):
        owned(tree)  # names the leaf at fault
        raise _bad_text() from None


def decode(data: bytes) -> Any:
    """Decode what `encode` made.

    Raises:
        SnapshotCorruptError: `data` is not an encoding of plain data.
    """
    return decode_all([data])[0]


def decode_own(data: bytes) -> Any:
    """Decode what a process of ours has encoded; without the checks that foreign data needs."""
    return _decoder.decode(data)


def decode_all(parts: Sequence[bytes]) -> list[Any]:
    """Decode the parts of one thing; together they are held to the limits of a single document.

    Raises:
        SnapshotCorruptError: A part is not an encoding of plain data.
    """
    left = MAX_NODES
    trees = []
    try:
        for data in parts:
            left -= check_size(data, CONTAINER_CODES, left)
            # msgpack has more kinds of keys than plain data
            trees.append(owned(_decoder.decode(data)))
    except (
        msgspec.DecodeError,
        RecursionError,
        ValueError,
        TypeError,
        OverflowError,
        StateEncodingError,
    ) as error:
        raise SnapshotCorruptError(
            f"the data is not an encoded snapshot tree ({error}); take the snapshot again"
        ) from error
    return trees


def check_readable(parts: Sequence[bytes]) -> None:
    """Refuse parts that `decode_all` would refuse for their size.

    Raises:
        StateEncodingError: They have too many values.
    """
    left = MAX_NODES
    try:
        for data in parts:
            left -= check_size(data, CONTAINER_CODES, left)
    except ValueError as error:
        raise StateEncodingError(
            f"the snapshot cannot be read back: {error}; keep many values in numpy arrays"
        ) from error


class _UntaggedError(Exception):
    """A value that has no wire form."""


def _tagged(tree: Any, pack: Callable[[Any], bytes]) -> Any:
    """`tree` in terms that msgpack has: native types, and `Ext` for all others."""
    kind = type(tree)
    if kind is str or kind is float or kind is bool or tree is None or kind is bytes:
        return tree
    if kind is int:
        return tree if -(1 << 63) <= tree < 1 << 64 else _big_int(tree)
    if kind is list:
        return [x if type(x) is str else _tagged(x, pack) for x in tree]
    if kind is dict:
        if all(type(k) is str for k in tree):
            return {k: _tagged(v, pack) for k, v in tree.items()}
        return _ext(_INT_KEYED, pack(_pairs(tree, pack)))
    if kind is tuple:
        return _ext(_TUPLE, pack([x if type(x) is str else _tagged(x, pack) for x in tree]))
    if type(tree) is np.ndarray and tree.dtype.kind in ARRAY_KINDS:
        return _ext(_ARRAY, pack([tree.dtype.str, list(tree.shape), tree.tobytes()]))
    if kind is np.str_ or kind is np.bytes_:  # numpy pads and cuts these, so they go by value
        return _ext(_SCALAR, pack([tree.dtype.kind, tree.item()]))
    if isinstance(tree, np.generic) and tree.dtype.kind in ARRAY_KINDS:
        return _ext(_SCALAR, pack([tree.dtype.str, tree.tobytes()]))
    if kind is TensorData:
        return _ext(_TENSOR, pack([tree.framework, tree.device, _tagged(tree.array, pack)]))
    raise _UntaggedError


def _pairs(tree: dict[Any, Any], pack: Callable[[Any], bytes]) -> list[Any]:
    if not all(type(k) is str or type(k) is int for k in tree):
        raise _UntaggedError
    keys = tree if pack is _pack else sorted(tree, key=lambda k: (type(k) is str, k))
    return [[_tagged(k, pack), _tagged(tree[k], pack)] for k in keys]


def _big_int(value: int) -> msgspec.msgpack.Ext:
    return _ext(_BIG_INT, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))


def _ext(code: int, data: bytes) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, data)


def _bad_text() -> StateEncodingError:
    return StateEncodingError(
        "a string is not valid Unicode (it has a lone surrogate) and cannot be written: decode "
        "bytes with errors='replace', or keep them as bytes"
    )


def _untag(code: int, payload: memoryview) -> Any:
    data = bytes(payload)
    if code == _BIG_INT:
        return int.from_bytes(data, "little", signed=True)
    parts = _decoder.decode(data)
    if type(parts) is not list:
        raise ValueError(f"extension type {code} holds no list")
    if code == _TUPLE:
        return tuple(parts)
    if code == _ARRAY:
        dtype, shape, raw = parts
        return _array(dtype, shape, raw)
    if code == _SCALAR:
        return _scalar(*parts)
    if code == _INT_KEYED:
        return _int_keyed(parts)
    if code == _TENSOR:
        return _tensor(*parts)
    raise ValueError(f"unknown extension type {code}")


def _scalar(dtype: str, value: Any) -> Any:
    if dtype == "U" and type(value) is str:
        return np.str_(value)
    if dtype == "S" and type(value) is bytes:
        return np.bytes_(value)
    return _array(dtype, [], value)[()]


def _tensor(framework: Any, device: Any, array: Any) -> TensorData:
    if framework not in FRAMEWORKS or type(device) is not str or type(array) is not np.ndarray:
        raise ValueError(f"an array of {framework!r} on {device!r} is not one that is known here")
    return TensorData(framework, device, array)


def _int_keyed(pairs: list[Any]) -> dict[Any, Any]:
    tree = {key: value for key, value in pairs if type(key) is str or type(key) is int}
    if len(tree) != len(pairs):
        raise ValueError("a dict has a key twice, or one that is neither str nor int")
    return tree


def _array(dtype_name: Any, shape: Any, raw: Any) -> np.ndarray[Any, Any]:
    if type(dtype_name) is not str or type(raw) is not bytes or type(shape) is not list:
        raise ValueError("an array's type, shape and content have the wrong types")
    if not _DTYPE.fullmatch(dtype_name) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"an array of dtype {dtype_name!r} and shape {shape} is not plain data")
    dtype = np.dtype(dtype_name)
    if math.prod(shape) * dtype.itemsize != len(raw):
        raise ValueError(f"an array of shape {shape} does not have {len(raw)} bytes")
    array: np.ndarray[Any, Any] = np.frombuffer(raw, dtype).reshape(shape).copy()
    if dtype.kind == "U" and not _are_characters(array):
        raise ValueError("an array of text holds what is no character")
    if dtype.kind == "b" and max(raw, default=0) > 1:
        raise ValueError("an array of bool holds what is neither true nor false")
    return array


def _are_characters(array: np.ndarray[Any, Any]) -> bool:
    """Whether numpy may make strings of these code points: it does not check, and would crash."""
    points = np.frombuffer(array.tobytes(), array.dtype.byteorder.replace("=", "<") + "u4")
    return not bool(np.any((points > 0x10FFFF) | ((points >= 0xD800) & (points < 0xE000))))


_DTYPE = re.compile(r"[<>|]([biufc]\d{1,2}|[SU]\d{1,9})")
_decoder = msgspec.msgpack.Decoder(ext_hook=_untag)
