"""A second instance of an environment: how it is built, and what tells one kind from another."""

from __future__ import annotations

import contextlib
import copy
import functools
import types
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium.utils import EzPickle, RecordConstructorArgs

from sandboxgym.core import wrappers
from sandboxgym.core.describe import described
from sandboxgym.core.digest import first_difference
from sandboxgym.core.errors import ReproductionError

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
        twin = factory()
        _check_same_kind(env, twin)
        return twin
    try:
        if env.spec is not None:
            hidden = windowless and env.render_mode == "human"
            return gym.make(env.spec, render_mode=None) if hidden else gym.make(env.spec)
        return _from_recorded_arguments(env)
    except (gym.error.Error, TypeError, ValueError) as error:
        raise ReproductionError(
            f"a second {env} cannot be built ({error}): pass forkable(env, factory=...)"
        ) from error


def _check_same_kind(env: AnyEnv, twin: AnyEnv) -> None:
    """Refuse what a factory made if it is known to be another kind of environment."""
    kinds = [_kind(env), _kind(twin)]
    if (env.spec is None) != (twin.spec is None):  # their arguments are recorded differently
        kinds = [{**kind, "arguments": {}} for kind in kinds]
    difference = first_difference(*kinds)
    if difference is not None:
        twin.close()
        raise ReproductionError(
            f"the factory makes another environment than {env}: {difference.path} is "
            f"{difference.right} and not {difference.left}"
        )


def _kind(env: AnyEnv) -> dict[str, Any]:
    layers = []
    while isinstance(env, gym.Wrapper):
        layers.append([wrappers.name_of(env), wrappers.kwargs_of(env)])
        env = env.env
    return {"wrappers": layers, "class": wrappers.name_of(env), "arguments": arguments_of(env)}


def settings_of(env: AnyEnv) -> list[dict[str, Any]]:
    """The numbers and words among the attributes of each layer, outermost first."""
    layers = [env]
    while isinstance(env, gym.Wrapper):
        env = env.env
        layers.append(env)
    return [
        {name: value for name, value in vars(layer).items() if _is_setting(value)}
        for layer in layers
    ]


def _is_setting(value: Any) -> bool:
    return type(value) in (bool, int, float) or (type(value) is str and value.isascii())


def changed_setting(
    env: AnyEnv, found: list[dict[str, Any]], factory: Factory | None
) -> str | None:
    """Which attribute was changed after `env` was built, or None where none is known to be.

    Args:
        env: The environment. One that was reset has a state too, and nothing is said of it.
        found: What `settings_of` says of another instance of the same kind.
        factory: Makes one more, where there is a difference: it may be in every instance.
    """
    here = settings_of(env)
    if _was_reset(env) or first_difference(here, found) is None:
        return None
    with contextlib.closing(build_twin(env, factory)) as twin:
        expected = settings_of(twin)
    for mine, others, new in zip(here, found, expected, strict=True):
        for name in sorted(mine.keys() & others.keys() & new.keys()):
            if first_difference(others[name], new[name]) is None:
                difference = first_difference(mine[name], new[name])
                if difference is not None:
                    return f"{name} is {difference.left} here, and {difference.right} in a new one"
    return None


def _was_reset(env: AnyEnv) -> bool:
    while isinstance(env, gym.Wrapper):
        if getattr(env, "_has_reset", False):
            return True
        env = env.env
    return env._np_random is not None


def unshare_spaces(base: AnyEnv) -> None:
    """Give an environment spaces of its own where it has those of its class.

    All instances would draw from one generator.
    """
    for name in ("action_space", "observation_space"):
        shared = getattr(type(base), name, None)
        if isinstance(shared, gym.Space) and name not in vars(base):
            setattr(base, name, copy.deepcopy(shared))


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
    return {name: described(value) for name, value in kwargs.items()}


def _identity(function: Any) -> Any:
    """A function by its name and by what it was given: arguments, defaults, closure, constants."""
    if isinstance(function, functools.partial):
        given = [*function.args, *function.keywords.items()]
        return [_identity(function.func), [described(value) for value in given]]
    name = described(function)
    if not isinstance(function, types.FunctionType) or "<" not in function.__qualname__:
        return name
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    given = [*(function.__defaults__ or ()), *cells, *function.__code__.co_consts]
    return [name, [described(value) for value in given]]
