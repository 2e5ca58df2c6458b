"""What an argument is, as plain data: to compare the arguments that two wrappers were given."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import gymnasium as gym
import numpy as np

from sandboxgym.core.digest import digest
from sandboxgym.core.errors import StateEncodingError
from sandboxgym.core.plain import owned

_INTERPRETER = f"{platform.python_implementation()}-{platform.python_version()}"
_LONGEST = 500


def described(value: Any) -> Any:
    """`value` as plain data: itself where it is that already, else what tells it from others.

    Functions and classes are described by their names, spaces by what they contain, other objects
    by their `repr` where that says more than an address.
    """
    if isinstance(value, gym.Space):
        return _space(value)
    if isinstance(value, functools.partial):
        return [described(value.func), described(value.args), described(value.keywords)]
    if type(value) in (list, tuple):
        return type(value)([described(part) for part in value])
    if isinstance(value, Mapping):
        return {_key(key): described(part) for key, part in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(repr(described(part)) for part in value)
    if isinstance(value, ModuleType):
        return f"<module {value.__name__}>"
    try:
        return owned(value)
    except StateEncodingError:
        return _name(value)


def fingerprints(arguments: Mapping[str, Any]) -> dict[str, str]:
    """A hash of the code of each argument that is, or contains, a function written in Python.

    Two functions of the same name may differ, as all lambdas of a function do. Hashes are equal
    where the code is equal and closes over equal data; they compare only within one version of
    Python, whose name each begins with.
    """
    found = {name: _fingerprint(value) for name, value in arguments.items()}
    return {name: f"{_INTERPRETER} {mark}" for name, mark in found.items() if mark is not None}


def differing_function(left: Mapping[str, str], right: Mapping[str, str]) -> str | None:
    """The first argument at which two results of `fingerprints` tell two functions apart."""
    for name, mark in left.items():
        other = right.get(name, mark)
        if mark != other and mark.split(" ")[0] == other.split(" ")[0]:
            return name
    return None


def _name(value: Any) -> str:
    if hasattr(value, "__qualname__"):
        return f"<{value.__module__}.{value.__qualname__}>"
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if getattr(type(value), "__repr__", None) is object.__repr__:
        return f"<{kind}>"
    text = repr(value)
    return f"<{kind}>" if " at 0x" in text or len(text) > _LONGEST else f"<{kind}: {text}>"


def _key(key: Any) -> str | int:
    return key if type(key) in (str, int) else repr(key)


def _space(space: gym.Space[Any]) -> dict[str, Any]:
    """The attributes of a space that say what it contains; not its generator."""
    skipped = ("_np_random", "_cached_bounded")
    fields = {name: value for name, value in vars(space).items() if name not in skipped}
    return {
        "space": f"{type(space).__module__}.{type(space).__qualname__}",
        **{name: _bounds(value) for name, value in fields.items()},
    }


def _bounds(value: Any) -> Any:
    """A bound of a space; one of many equal numbers, as images have, in short."""
    if isinstance(value, np.ndarray) and value.size > 1:
        first = value.flat[0]
        short = first if bool(np.all(value == first)) else digest(value)
        return {"dtype": str(value.dtype), "shape": value.shape, "all": short}
    if isinstance(value, np.dtype):
        return str(value)
    return described(value)


def _fingerprint(value: Any) -> str | None:
    """A hash of a function, or of the functions inside a value; None where there is none."""
    if isinstance(value, FunctionType):
        cells = [_closed_over(cell) for cell in value.__closure__ or ()]
        defaults = [value.__defaults__ or (), value.__kwdefaults__ or {}]
        return digest([_code(value.__code__), cells, [_content(part) for part in defaults]])
    if isinstance(value, MethodType):
        return _fingerprint(value.__func__)
    if isinstance(value, functools.partial):
        return _fingerprint([value.func, list(value.args), list(value.keywords.values())])
    if isinstance(value, Mapping):
        return _fingerprint(list(value.values()))
    if isinstance(value, list | tuple):
        marks = [_fingerprint(part) for part in value]
        return digest(marks) if any(mark is not None for mark in marks) else None
    return None


def _code(code: CodeType) -> list[Any]:
    constants = [_code(c) if isinstance(c, CodeType) else _constant(c) for c in code.co_consts]
    return [code.co_code, list(code.co_names), list(code.co_varnames), constants]


def _constant(value: Any) -> str:
    # A frozenset of strings has another order in every process.
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)


def _closed_over(cell: Any) -> Any:
    try:
        return _content(cell.cell_contents)
    except ValueError:  # not assigned yet
        return None


def _content(value: Any) -> Any:
    if isinstance(value, FunctionType):  # it may close over itself, so its code has to do
        return [described(value), _code(value.__code__)]
    if isinstance(value, BuiltinFunctionType | type | ModuleType):
        return described(value)
    try:
        return owned(value)
    except StateEncodingError:
        return f"<{type(value).__module__}.{type(value).__qualname__}>"
