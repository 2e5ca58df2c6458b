"""How another process makes the environment: a function that can be sent there."""

from __future__ import annotations

from functools import partial
from typing import Any

import cloudpickle
import gymnasium as gym
from gymnasium.utils import EzPickle, RecordConstructorArgs

from sandboxgym.core import wrappers
from sandboxgym.core.errors import ReproductionError
from sandboxgym.mechanisms.twins import AnyEnv, Factory


def maker_of(env: AnyEnv, factory: Factory | None) -> bytes:
    """What makes another `env`, pickled; functions of the main program go by value.

    Raises:
        ReproductionError: Nothing says how `env` was made, or that cannot be sent.
    """
    try:
        pickled: bytes = cloudpickle.dumps(factory or _recorded(env))
    except ReproductionError:
        raise
    except Exception as error:
        raise ReproductionError(
            f"what makes {env} cannot be sent to another process ({type(error).__name__}: "
            f"{error}): pass forkable(env, factory=...) with a function that refers to nothing "
            "but what it can import, and plain data"
        ) from error
    return pickled


def _recorded(env: AnyEnv) -> Factory:
    """What makes another one by the records that Gymnasium and the classes keep."""
    if env.spec is not None:
        return partial(gym.make, env.spec)
    if isinstance(env, gym.Wrapper) and isinstance(env, RecordConstructorArgs):
        return partial(_wrap, type(env), wrappers.constructed_with(env), _recorded(env.env))
    if isinstance(env, EzPickle):
        args: Any = env._ezpickle_args
        return partial(type(env), *args, **env._ezpickle_kwargs)
    raise ReproductionError(
        f"nothing records how the {type(env).__name__} was made, so another process cannot make "
        "one: pass forkable(env, factory=...)"
    )


def _wrap(wrapper: Any, kwargs: dict[str, Any], make: Factory) -> AnyEnv:
    wrapped: AnyEnv = wrapper(make(), **kwargs)
    return wrapped
