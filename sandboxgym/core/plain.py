"""Plain data: what a state, an observation, an info and an action may consist of.

Plain data is None, bool, int, float, str, bytes, list, tuple, dict with str or int keys, numpy
arrays (no object arrays), numpy scalars and `TensorData`, nested in any way. It can be copied,
compared, hashed and written to a file without running any code of its own, which is why snapshots
hold nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sandboxgym.core.errors import StateEncodingError

MAX_DEPTH = 100
ARRAY_KINDS = frozenset("biufcSU")
FRAMEWORKS = ("torch", "jax")

_IMMUTABLE = frozenset({type(None), bool, int, float, str, bytes})


@dataclass(frozen=True, eq=False)
class TensorData:
    """An array of another framework as data; `sandboxgym.core.tensors` makes it and undoes it.

    Attributes:
        framework: One of `FRAMEWORKS`.
        device: Where the array was, in the words of its framework; "" for the default device.
        array: Its content.
    """

    framework: str
    device: str
    array: np.ndarray[Any, Any]


def owned(tree: Any, where: str = "value") -> Any:
    """Return a copy of `tree` that shares nothing mutable with it.

    Args:
        tree: Plain data.
        where: What the data is, for the error message ("state", "info", ...).

    Raises:
        StateEncodingError: `tree` holds something that is not plain data; the message has its path.
    """
    try:
        return _copy(tree, 0)
    except _NotPlainError:
        raise StateEncodingError(_explain(tree, where)) from None


def plain_or_name(value: Any) -> Any:
    """A copy of `value` where it is plain data, else a name that says what it is."""
    try:
        return owned(value)
    except StateEncodingError:
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"<{named.__module__}.{named.__qualname__}>"


def is_array(value: Any) -> bool:
    """Whether `value` is a numpy array whose elements are plain data.

    Subclasses are not: what they add (a masked array's mask, say) would be lost on the way.
    """
    return type(value) is np.ndarray and value.dtype.kind in ARRAY_KINDS


def is_scalar(value: Any) -> bool:
    """Whether `value` is a numpy scalar that is plain data."""
    return isinstance(value, np.generic) and value.dtype.kind in ARRAY_KINDS


class _NotPlainError(Exception):
    """A leaf is not plain data; only `owned` sees this, and says where the leaf is."""


def _copy(tree: Any, depth: int) -> Any:
    kind = type(tree)
    if kind in _IMMUTABLE:
        return tree
    if depth > MAX_DEPTH:
        raise _NotPlainError
    if kind is list:
        return [x if type(x) in _IMMUTABLE else _copy(x, depth + 1) for x in tree]
    if kind is dict:
        if not all(type(k) is str or type(k) is int for k in tree):
            raise _NotPlainError
        return {k: v if type(v) in _IMMUTABLE else _copy(v, depth + 1) for k, v in tree.items()}
    if kind is tuple:
        return tuple([x if type(x) in _IMMUTABLE else _copy(x, depth + 1) for x in tree])
    if is_array(tree):
        return tree.copy()
    if is_scalar(tree):
        return tree
    if kind is TensorData:
        return TensorData(tree.framework, tree.device, tree.array.copy())
    raise _NotPlainError


def _explain(tree: Any, where: str) -> str:
    for path, fault in _faults(tree, where, 0):
        return (
            f"{path} is {fault}, which is not plain data: use None, bool, int, float, str, bytes, "
            "list, tuple, dict with str or int keys, numpy arrays (not of dtype object) or scalars"
        )
    raise AssertionError(f"{where} was refused as not plain, but no leaf of it is at fault")


def _faults(tree: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    kind = type(tree)
    if depth > MAX_DEPTH:
        yield path[:200] + "...", f"nested deeper than {MAX_DEPTH} levels (does it contain itself?)"
    elif kind is dict:
        for key, value in tree.items():
            if type(key) is str or type(key) is int:
                yield from _faults(value, f"{path}[{key!r}]", depth + 1)
            else:
                yield path, f"a dict with the key {key!r} of type {_name(key)}"
    elif kind is list or kind is tuple:
        for i, value in enumerate(tree):
            yield from _faults(value, f"{path}[{i}]", depth + 1)
    elif not (kind in _IMMUTABLE or kind is TensorData or is_array(tree) or is_scalar(tree)):
        dtype = f" of dtype {tree.dtype}" if isinstance(tree, np.ndarray) else ""
        yield path, f"a {_name(tree)}{dtype}"


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
