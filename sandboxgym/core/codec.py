"""Plain data as bytes: msgpack with tags for what msgpack does not know.

Tuples, numpy arrays and scalars, big integers and dicts with int keys travel as msgpack extension
types, so that decoding gives back exactly the types that went in. Decoding runs no code from the
data and refuses what does not fit; it never sees pickle. (msgpack specification:
https://github.com/msgpack/msgpack/blob/master/spec.md)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from sandboxgym.core.errors import SnapshotCorruptError, StateEncodingError
from sandboxgym.core.plain import ARRAY_KINDS, owned

_TUPLE, _ARRAY, _SCALAR, _BIG_INT, _INT_KEYED = 1, 2, 3, 4, 5

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
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, ValueError, TypeError, OverflowError) as error:
        raise SnapshotCorruptError(
            f"the data is not an encoded snapshot tree ({error}); take the snapshot again"
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
    if isinstance(tree, np.generic) and tree.dtype.kind in ARRAY_KINDS:
        return _ext(_SCALAR, pack([tree.dtype.str, tree.tobytes()]))
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
    if code == _TUPLE and type(parts) is list:
        return tuple(parts)
    if code == _ARRAY:
        dtype, shape, raw = parts
        return _array(dtype, tuple(shape), raw)
    if code == _SCALAR:
        dtype, raw = parts
        return _array(dtype, (), raw)[()]
    if code == _INT_KEYED and type(parts) is list:
        return dict(parts)
    raise ValueError(f"unknown extension type {code}")


def _array(dtype_name: str, shape: tuple[int, ...], raw: bytes) -> np.ndarray[Any, Any]:
    if type(dtype_name) is not str or type(raw) is not bytes:
        raise ValueError("an array's type and content have the wrong types")
    dtype = np.dtype(dtype_name)
    if dtype.kind not in ARRAY_KINDS or dtype.hasobject or any(n < 0 for n in shape):
        raise ValueError(f"an array of dtype {dtype_name!r} and shape {shape} is not plain data")
    if math.prod(shape) * dtype.itemsize != len(raw):
        raise ValueError(f"an array of shape {shape} does not have {len(raw)} bytes")
    array: np.ndarray[Any, Any] = np.frombuffer(raw, dtype).reshape(shape).copy()
    return array


_decoder = msgspec.msgpack.Decoder(ext_hook=_untag)
