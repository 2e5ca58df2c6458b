"""Canonical hash of plain data, and the exact, path-wise difference of two trees."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from sandboxgym.core import codec
from sandboxgym.core.plain import TensorData


def digest(tree: Any) -> str:
    """Hash plain data to 32 hex digits (BLAKE2b, 128 bits) that are the same in any process.

    Keys are sorted; types, dtypes and shapes count; floats count by their bits, so `0.0` and
    `-0.0` differ and a NaN equals itself.

    Raises:
        StateEncodingError: `tree` holds something that is not plain data.
    """
    return hashlib.blake2b(codec.encode(tree, canonical=True), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Difference:
    """One leaf at which two trees differ."""

    path: str
    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.path or '(root)'}: {self.left} != {self.right}"


def differences(left: Any, right: Any, *, limit: int = 20) -> list[Difference]:
    """The first `limit` leaves, by path, at which two trees of plain data differ."""
    return list(islice(_walk(left, right, ""), limit))


def first_difference(left: Any, right: Any) -> Difference | None:
    """The first leaf at which two trees of plain data differ, or None where they are equal."""
    return next(_walk(left, right, ""), None)


def _walk(left: Any, right: Any, path: str) -> Iterator[Difference]:
    if type(left) is not type(right):
        yield Difference(path, _show(left), _show(right))
    elif isinstance(left, dict):
        for key in [*left, *(k for k in right if k not in left)]:
            where = f"{path}[{key!r}]"
            if key not in right:
                yield Difference(where, _show(left[key]), "(absent)")
            elif key not in left:
                yield Difference(where, "(absent)", _show(right[key]))
            else:
                yield from _walk(left[key], right[key], where)
    elif isinstance(left, list | tuple):
        for i, (a, b) in enumerate(zip(left, right, strict=False)):
            yield from _walk(a, b, f"{path}[{i}]")
        if len(left) != len(right):
            yield Difference(f"len({path or 'root'})", str(len(left)), str(len(right)))
    elif isinstance(left, np.ndarray):
        yield from _walk_arrays(left, right, path)
    elif isinstance(left, TensorData):
        if (left.framework, left.device) != (right.framework, right.device):
            yield Difference(path, _show(left), _show(right))
        yield from _walk_arrays(left.array, right.array, path)
    elif isinstance(left, np.generic):
        if left.dtype != right.dtype or left.tobytes() != right.tobytes():
            yield Difference(path, _show(left), _show(right))
    elif isinstance(left, float):
        if struct.pack("<d", left) != struct.pack("<d", right):
            yield Difference(path, _show(left), _show(right))
    elif left != right:
        yield Difference(path, _show(left), _show(right))


def _walk_arrays(left: Any, right: Any, path: str) -> Iterator[Difference]:
    if left.dtype != right.dtype or left.shape != right.shape:
        yield Difference(path, f"{left.dtype}{left.shape}", f"{right.dtype}{right.shape}")
    elif left.tobytes() != right.tobytes():
        for index in np.ndindex(left.shape):
            if left[index].tobytes() != right[index].tobytes():
                at = ", ".join(map(str, index))
                yield Difference(f"{path}[{at}]", _show(left[index]), _show(right[index]))
                return


def _show(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python refuses to spell integers of thousands of digits
        text = f"a {type(value).__name__} with a number too long to show"
    return text if len(text) <= 120 else f"{text[:100]}... ({len(text)} characters)"
