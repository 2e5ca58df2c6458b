"""How an environment that knows nothing of snapshots is captured natively: the state API.

A `StateApi` says, for one kind of base environment, what its state is and how it is put back. It is
registered by name, so that registering one imports neither it nor the environment.
"""

from __future__ import annotations

import importlib
from typing import Any, ClassVar, TypeAlias

import gymnasium as gym

from sandboxgym.core.errors import NotForkableError
from sandboxgym.core.rng import reseed_generator
from sandboxgym.core.snapshot import Fidelity

AnyEnv: TypeAlias = gym.Env[Any, Any]


class StateApi:
    """Captures and sets the state of one kind of base environment.

    An author implements `get` and `set`, and the others where they apply. One instance of this
    belongs to one environment. The generators `np_random` and those of the action and observation
    space are captured beside it.

    Attributes:
        state_version: Raise it when the layout of what `get` returns changes.
        fidelity: What a snapshot captures.
        packages: Installed distributions, besides the environment's own, on whose version the
            meaning of a state depends.
        covers_subclasses: Whether it captures also what a subclass of the registered class adds.
        draws_seeds: Whether a reset without a seed is given one that is drawn from `np_random`: for
            environments that would otherwise ask the operating system for randomness.
    """

    state_version: ClassVar[int] = 1
    fidelity: ClassVar[Fidelity] = Fidelity()
    packages: ClassVar[tuple[str, ...]] = ()
    covers_subclasses: ClassVar[bool] = False
    draws_seeds: ClassVar[bool] = False

    def attach(self, env: Any) -> None:
        """Prepare `env` once, before its first reset under the contract."""

    def get(self, env: Any) -> Any:
        """Return all that decides the future of `env` as plain data, without changing anything.

        Raises:
            UncapturedStateError: It holds something that cannot be captured.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement get")

    def set(self, env: Any, state: Any) -> None:
        """Make `env` continue exactly from a state that `get` of an equal environment returned.

        `env` may never have been reset. The state belongs to the callee.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement set")

    def reseed(self, env: Any, seed: int) -> None:
        """Start new randomness from `seed`; one with other generators overrides it."""
        reseed_generator(env, seed)

    def refuse(self, env: Any) -> str | None:
        """Why this instance cannot be captured exactly (an option it was made with, say)."""
        return None


_registered: dict[str, str | type[StateApi]] = {}


def register_native(environment: str | type[AnyEnv], api: str | type[StateApi]) -> None:
    """Say how environments of one kind are captured natively.

    Args:
        environment: The class of the base environment, or its name "module:Class", or the name of
            a package: all environments defined in it.
        api: The `StateApi` subclass, or its name "module:Class"; it is imported when first used.
    """
    name = environment if isinstance(environment, str) else _name(environment)
    _registered[name] = api


def api_for(env: AnyEnv) -> StateApi | None:
    """A new state API for a base environment, or None where none is registered.

    Raises:
        NotForkableError: The registered one cannot be loaded, or it is that of a base class and
            does not say that it covers what this class adds.
    """
    for cls in type(env).__mro__:
        found = None if cls is gym.Env else _lookup(cls)
        if found is None:
            continue
        api = _load(found) if isinstance(found, str) else found
        if cls is not type(env) and not api.covers_subclasses:
            raise NotForkableError(
                f"{api.__name__} is the state API of {cls.__name__}, and {type(env).__name__} may "
                "add state to it: register one for it with sandboxgym.register_native"
            )
        return api()
    return None


def _lookup(cls: type) -> str | type[StateApi] | None:
    """What is registered for exactly this class, or else for the package that it is defined in."""
    if _name(cls) in _registered:
        return _registered[_name(cls)]
    package = cls.__module__
    while package:
        if package in _registered:
            return _registered[package]
        package = package.rpartition(".")[0]
    return None


def _load(name: str) -> type[StateApi]:
    module, _, qualname = name.partition(":")
    try:
        found: type[StateApi] = getattr(importlib.import_module(module), qualname)
    except (ImportError, AttributeError) as error:
        raise NotForkableError(f"the state API {name} cannot be imported: {error}") from error
    return found


def _name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"
