"""A hash of any Python object, to see whether it changed between two looks."""

from __future__ import annotations

import collections
import functools
import hashlib
import random
import types
from typing import Any

import numpy as np

MAX_OBJECTS = 20_000  # of one object's parts; what lies beyond is not looked at

_LEAVES = (type(None), bool, int, float, complex, str, bytes)
_OPAQUE = (type, types.ModuleType, types.BuiltinFunctionType, functools._lru_cache_wrapper)


def fingerprint(value: Any) -> str:
    """Hash the data that `value` consists of: containers, arrays, generators, attributes.

    A function counts by what it keeps: defaults, closure, attributes. Classes and modules count by
    their identity, so do caches of functions. It means something in this process only.
    """
    hasher = hashlib.blake2b(digest_size=16)
    numbers: dict[int, int] = {}
    alive = []  # so that no object met on the way gives its id to another
    todo = [value]
    while todo and len(numbers) < MAX_OBJECTS:
        part = todo.pop()
        kind = type(part)
        hasher.update(kind.__qualname__.encode())
        if kind in _LEAVES:
            hasher.update(repr(part).encode("utf-8", "surrogatepass"))
        elif id(part) in numbers:
            hasher.update(b"number %d" % numbers[id(part)])
        else:
            numbers[id(part)] = len(numbers)
            alive.append(part)
            if kind is np.ndarray and not part.dtype.hasobject:
                hasher.update(f"{part.dtype}{part.shape}".encode())
                hasher.update(part.tobytes())
            else:
                todo.extend(_parts(part))
    return hasher.hexdigest()


def _parts(value: Any) -> list[Any]:
    """What an object consists of."""
    if isinstance(value, _OPAQUE):
        return [id(value)]
    if isinstance(value, types.FunctionType):
        cells = [_content(cell) for cell in value.__closure__ or ()]
        return [id(value), value.__defaults__, value.__kwdefaults__, cells, vars(value)]
    if isinstance(value, types.MethodType | staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, np.random.Generator):
        return [value.bit_generator.state]
    if isinstance(value, np.random.RandomState):
        return [value.get_state(legacy=False)]
    if isinstance(value, random.Random):
        return [value.getstate()]
    inside = dict(getattr(value, "__dict__", {}))
    if isinstance(value, dict):
        return [*value.keys(), *value.values(), inside]
    if isinstance(value, list | tuple | set | frozenset | collections.deque):
        return [*value, inside]
    return [*inside.keys(), *inside.values()]


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty still
        return None
