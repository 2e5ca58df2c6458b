"""The state API of environments whose attributes are all plain data, such as classic control.

Nothing is guessed: an attribute is captured, or known to be no state, or it makes the environment
refuse, by name.
"""

from __future__ import annotations

import random
import types
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from sandboxgym.core.errors import StateEncodingError, UncapturedStateError
from sandboxgym.core.plain import is_array, owned, plain_or_name
from sandboxgym.core.rng import generator_from, generator_state
from sandboxgym.mechanisms.state_api import AnyEnv, StateApi

# Who an instance is, not what state it is in.
_IDENTITY = frozenset(
    {"spec", "render_mode", "_saved_kwargs", "_ezpickle_args", "_ezpickle_kwargs"}
)
# What is captured beside the state, by the contract itself.
_BESIDE = frozenset({"_np_random", "_np_random_seed"})
_CONSTANTS = (
    gym.Space,
    EnvSpec,
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
)


class Attributes(StateApi):
    """Captures every attribute of an environment that is plain data or a random generator.

    Spaces, functions, classes and modules are constants: they are described in the state, and a
    state is refused by an instance that has others.

    Attributes:
        left_alone: Names of attributes that are no state: what is drawn on, a cache. They are
            neither captured nor set.
    """

    covers_subclasses: ClassVar[bool] = True
    left_alone: ClassVar[frozenset[str]] = frozenset()

    def get(self, env: AnyEnv) -> dict[str, Any]:
        """Sort all attributes into plain data, generators, aliases and constants."""
        sorter = _Sorter(env)
        for name, value in self._attributes(env).items():
            sorter.add(name, value)
        return sorter.state

    def set(self, env: AnyEnv, state: dict[str, Any]) -> None:
        """Give the attributes their values, and take away those that came later."""
        here = self._attributes(env)
        for name, description in state["constants"].items():
            found = _describe(here[name]) if name in here else "no such attribute"
            if found != description:
                raise UncapturedStateError(
                    f"{_of(env, name)} is {found} here and was {description} when the state was "
                    "captured; it is no plain data, so it cannot be set"
                )
        kept = {name for part in state.values() for name in part}
        for name in here.keys() - kept:
            delattr(env, name)
        for name, value in state["plain"].items():
            setattr(env, name, value)
        for name, packed in state["generators"].items():
            setattr(env, name, _unpacked(packed, here.get(name)))
        for name, other in state["aliases"].items():
            setattr(env, name, env.np_random if other == "np_random" else getattr(env, other))

    def refuse(self, env: AnyEnv) -> str | None:
        """The first attribute that cannot be captured."""
        for cls in type(env).__mro__:
            if cls.__dict__.get("__slots__"):
                return f"{cls.__name__} keeps attributes in __slots__"
        try:
            self.get(env)
        except UncapturedStateError as error:
            return str(error)
        return None

    def _attributes(self, env: AnyEnv) -> dict[str, Any]:
        outside = _IDENTITY | _BESIDE | self.left_alone
        return {name: value for name, value in vars(env).items() if name not in outside}


class _Sorter:
    """Sorts the attributes of one environment; knows which mutable objects it has met."""

    def __init__(self, env: AnyEnv) -> None:
        self.env = env
        self.state: dict[str, Any] = {"plain": {}, "generators": {}, "aliases": {}, "constants": {}}
        self._names: dict[int, str] = {}
        self._paths: dict[int, str] = {}
        if env._np_random is not None:
            self._paths[id(env._np_random.bit_generator)] = "np_random"

    def add(self, name: str, value: Any) -> None:
        """Put one attribute where it belongs.

        Raises:
            UncapturedStateError: It belongs nowhere.
        """
        if isinstance(value, _CONSTANTS):
            self._check_constant(name, value)
            self.state["constants"][name] = _describe(value)
        elif value is self.env._np_random and value is not None:
            self.state["aliases"][name] = "np_random"
        elif id(value) in self._names:
            self.state["aliases"][name] = self._names[id(value)]
        elif type(value) in _PACKERS:
            self._add_generator(name, value)
        else:
            self._add_plain(name, value)

    def _add_plain(self, name: str, value: Any) -> None:
        try:
            copied = owned(value, _of(self.env, name))
        except StateEncodingError as error:
            raise UncapturedStateError(f"{error}; and it is not known to be no state") from error
        for part, path in _mutable_parts(value, name):
            self._met(part, path)
        if _mutable(value):
            self._names[id(value)] = name
        self.state["plain"][name] = copied

    def _add_generator(self, name: str, value: Any) -> None:
        if type(value) is np.random.Generator:
            self._met(value.bit_generator, name)
        self._names[id(value)] = name
        self.state["generators"][name] = [type(value).__name__, _PACKERS[type(value)](value)]

    def _met(self, part: Any, path: str) -> None:
        """Refuse what was met before: a copy of two attributes would no longer share it."""
        if id(part) in self._paths:
            raise UncapturedStateError(
                f"{_of(self.env, path)} and {_of(self.env, self._paths[id(part)])} share one "
                "mutable object, and what is restored would not"
            )
        self._paths[id(part)] = path

    def _check_constant(self, name: str, value: Any) -> None:
        function = value
        if isinstance(value, types.MethodType):
            if value.__self__ is not self.env and not isinstance(value.__self__, type):
                raise UncapturedStateError(f"{_of(self.env, name)} is a method of another object")
            function = value.__func__
        if isinstance(function, types.FunctionType) and (function.__closure__ or vars(function)):
            raise UncapturedStateError(
                f"{_of(self.env, name)} is a function with variables of its own, which may change"
            )
        if isinstance(value, gym.Space) and value._np_random is not None:
            spaces = (self.env.action_space, self.env.observation_space)
            if not any(value is space for space in spaces):
                raise UncapturedStateError(
                    f"{_of(self.env, name)} is a space that is drawn from, and neither the action "
                    "space nor the observation space"
                )


def _mutable(value: Any) -> bool:
    return type(value) in (list, dict) or is_array(value)


def _mutable_parts(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """All mutable objects in a tree of plain data; for an array, what holds its memory."""
    if is_array(value):
        owner = value
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if owner.base is not None and value.flags.writeable:
            raise UncapturedStateError(f"{path} is an array in memory that something else holds")
        yield owner, path
    elif type(value) is dict:
        yield value, path
        for key, item in value.items():
            yield from _mutable_parts(item, f"{path}[{key!r}]")
    elif type(value) in (list, tuple):
        if type(value) is list:
            yield value, path
        for i, item in enumerate(value):
            yield from _mutable_parts(item, f"{path}[{i}]")


_PACKERS: dict[type, Callable[[Any], Any]] = {
    np.random.Generator: generator_state,
    np.random.RandomState: lambda generator: generator.get_state(legacy=False),
    random.Random: lambda generator: generator.getstate(),
}


def _unpacked(packed: list[Any], current: Any) -> Any:
    """A generator in a captured state: the present one, where it is of the same kind."""
    kind, state = packed
    if kind == "Generator":
        return generator_from(state, current if type(current) is np.random.Generator else None)
    if kind == "RandomState":
        legacy = current if type(current) is np.random.RandomState else np.random.RandomState(0)
        legacy.set_state(state)
        return legacy
    plain = current if type(current) is random.Random else random.Random(0)
    plain.setstate(state)
    return plain


def _describe(value: Any) -> Any:
    """What a constant is, as plain data that is equal for equal constants."""
    if isinstance(value, gym.Space):
        parts = {name: part for name, part in vars(value).items() if name != "_np_random"}
        return [type(value).__name__, {name: _describe(part) for name, part in parts.items()}]
    if isinstance(value, dict):
        return {str(key): _describe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_describe(item) for item in value]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, EnvSpec):
        return value.id
    return plain_or_name(value)


def _of(env: AnyEnv, name: str) -> str:
    return f"{type(env).__name__}.{name}"
