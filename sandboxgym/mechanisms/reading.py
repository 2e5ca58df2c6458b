"""What the code of an environment's classes says that it may do beside its own objects.

The probe watches an environment for a few dozen steps. What it does later, once, on a rare branch,
shows in its code: a method that assigns a global, draws from a global random generator, or changes
a list that its class shares among all instances. Only the methods of its classes are read, not what
they call elsewhere, and a name that was given to such an object on the way is not followed.
"""

from __future__ import annotations

import dis
import random
import types
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from sandboxgym.mechanisms.twins import AnyEnv

_MUTABLE = (list, dict, set, bytearray, np.ndarray)
_MUTATORS = frozenset(
    name
    for kind in (list, dict, set)
    for name in dir(kind)
    if not name.startswith("_") and not hasattr(frozenset, name) and not hasattr(tuple, name)
) - {"copy", "fromkeys", "get", "items", "keys", "values"} | {"fill"}
_DESCRIPTIONS = ("metadata",)  # Gymnasium's, which says and decides nothing
_WITHIN = 6  # instructions between a container and what is done at an index of it
_ATTRIBUTE_OPS = ("LOAD_ATTR", "LOAD_METHOD")
_GLOBAL_DRAWS = frozenset(
    name for name in dir(np.random.mtrand) if hasattr(np.random.RandomState, name)
)


def shared_by_its_code(env: AnyEnv) -> str | None:
    """The first thing in the code of an environment's classes that a copy of it would share."""
    for cls in type(env.unwrapped).__mro__:
        if cls is gym.Env or cls is object:
            break
        for name, value in vars(cls).items():
            for function in _functions(value):
                for finding in _findings(function, type(env.unwrapped)):
                    return f"{cls.__name__}.{name} {finding}: instances share that"
    return None


def _functions(value: Any) -> Iterator[types.FunctionType]:
    """Functions that an entry of a class stands for."""
    if isinstance(value, property):
        candidates = [value.fget, value.fset]
    else:
        candidates = [getattr(value, "__func__", value)]
    for candidate in candidates:
        if isinstance(candidate, types.FunctionType):
            yield candidate


def _findings(function: types.FunctionType, cls: type) -> Iterator[str]:
    for code in _codes(function.__code__):
        instructions = list(dis.get_instructions(code))
        for before, here in zip([None, *instructions], instructions, strict=False):
            if here.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                yield f"assigns the global {here.argval}"
            elif here.opname == "LOAD_GLOBAL":
                yield from _global_draw(function.__globals__.get(here.argval), here.argval)
            elif before is not None and here.opname in _ATTRIBUTE_OPS:
                yield from _numpy_draw(before, here, instructions, function)
        yield from _shared_mutables(instructions, cls)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _global_draw(value: Any, name: str) -> Iterator[str]:
    """What a global is, if it is a global generator or draws from one."""
    owner = getattr(value, "__self__", None)
    if value is random:
        yield f"uses the module {name}, whose generator is global"
    elif owner is random._inst or owner is np.random.mtrand._rand:
        yield f"calls {name}, which draws from a global generator"


def _numpy_draw(
    before: dis.Instruction,
    here: dis.Instruction,
    instructions: list[dis.Instruction],
    function: types.FunctionType,
) -> Iterator[str]:
    """`np.random.normal` and the like: draws from numpy's global generator."""
    if before.opname not in ("LOAD_GLOBAL", *_ATTRIBUTE_OPS) or here.argval not in _GLOBAL_DRAWS:
        return
    module = function.__globals__.get(before.argval)
    if before.opname != "LOAD_GLOBAL":
        earlier = instructions[instructions.index(before) - 1]
        parent = function.__globals__.get(earlier.argval) if earlier.argval else None
        module = getattr(parent, before.argval, None) if parent is np else None
    if module is np.random:
        yield f"calls numpy.random.{here.argval}, which draws from a global generator"


def _shared_mutables(instructions: list[dis.Instruction], cls: type) -> Iterator[str]:
    """Containers of a class that code changes."""
    for at, instruction in enumerate(instructions):
        name = instruction.argval
        if instruction.opname not in _ATTRIBUTE_OPS or name in _DESCRIPTIONS:
            continue
        if isinstance(getattr(cls, name, None), _MUTABLE) and _changes(instructions[at + 1 :]):
            yield f"changes {cls.__name__}.{name}"


def _changes(what_follows: list[dis.Instruction]) -> bool:
    """Whether a container that was just loaded is changed: by a method, or at an index."""
    for distance, instruction in enumerate(what_follows[:_WITHIN]):
        if instruction.opname in _ATTRIBUTE_OPS:
            return distance == 0 and instruction.argval in _MUTATORS
        if instruction.opname in ("STORE_SUBSCR", "DELETE_SUBSCR", "COPY", "DUP_TOP_TWO"):
            return True  # the last two begin an assignment like `a[i] += 1`
        if instruction.opname.startswith(("BINARY", "STORE", "CALL", "RETURN")):
            return False
    return False
