"""A second instance of an environment: how it is built, and what tells one kind from another."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium.utils import EzPickle, RecordConstructorArgs

from sandboxgym.core import wrappers
from sandboxgym.core.errors import ReproductionError
from sandboxgym.core.plain import plain_or_name

AnyEnv: TypeAlias = gym.Env[Any, Any]
Factory: TypeAlias = Callable[[], AnyEnv]


def build_twin(env: AnyEnv, factory: Factory | None = None, *, windowless: bool = False) -> AnyEnv:
    """Another instance of `env` with all its wrappers, not reset.

    Args:
        env: The environment, under any wrappers.
        factory: What makes one. None takes what Gymnasium or the classes recorded.
        windowless: Whether one that shows itself in a window is to be replaced by one that does
            not, as far as Gymnasium knows how.

    Raises:
        ReproductionError: Nothing says how `env` was made, or making another failed.
    """
    if factory is not None:
        return factory()
    try:
        if env.spec is not None:
            hidden = windowless and env.render_mode == "human"
            return gym.make(env.spec, render_mode=None) if hidden else gym.make(env.spec)
        return _from_recorded_arguments(env)
    except (gym.error.Error, TypeError, ValueError) as error:
        raise ReproductionError(
            f"a second {env} cannot be built ({error}): pass forkable(env, factory=...)"
        ) from error


def _from_recorded_arguments(env: AnyEnv) -> AnyEnv:
    """Build the stack from the arguments that its classes recorded."""
    if isinstance(env, gym.Wrapper):
        if not isinstance(env, RecordConstructorArgs):
            raise ReproductionError(
                f"{type(env).__name__} does not record how it was constructed, so a second one "
                "cannot be built: pass forkable(env, factory=...)"
            )
        inner = build_twin(env.env)
        return type(env)(inner, **wrappers.constructed_with(env))
    if isinstance(env, EzPickle):
        args: Any = env._ezpickle_args
        return type(env)(*args, **env._ezpickle_kwargs)
    raise ReproductionError(
        f"{env} was not made by gymnasium.make, so a second one cannot be built: pass "
        "forkable(env, factory=...)"
    )


def arguments_of(base: AnyEnv, factory: Factory | None = None) -> dict[str, Any]:
    """What a base environment was made with, as plain data and without `render_mode`.

    Two environments of one class with equal values here take each other's snapshots. For one that
    neither Gymnasium nor its class recorded, that is what its factory is.
    """
    if base.spec is not None:
        kwargs = dict(base.spec.kwargs)
    elif isinstance(base, EzPickle):
        kwargs = {str(i): value for i, value in enumerate(base._ezpickle_args)}
        kwargs.update(base._ezpickle_kwargs)
    elif factory is not None:
        return {"factory": _identity(factory)}
    else:
        return {}
    kwargs.pop("render_mode", None)
    return {name: plain_or_name(value) for name, value in kwargs.items()}


def _identity(function: Any) -> Any:
    """A function by its name and by what it was given: arguments, defaults, closure, constants."""
    if isinstance(function, functools.partial):
        given = [*function.args, *function.keywords.items()]
        return [_identity(function.func), [plain_or_name(value) for value in given]]
    name = plain_or_name(function)
    if not isinstance(function, types.FunctionType) or "<" not in function.__qualname__:
        return name
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    given = [*(function.__defaults__ or ()), *cells, *function.__code__.co_consts]
    return [name, [plain_or_name(value) for value in given]]
