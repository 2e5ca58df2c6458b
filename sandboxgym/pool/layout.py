"""Which lane is made by what, and which worker it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import cloudpickle
import gymnasium as gym

from sandboxgym.core.errors import ReproductionError
from sandboxgym.core.stack import AnyEnv
from sandboxgym.pool.lanes import Lane
from sandboxgym.pool.posts import Post

EnvMaker: TypeAlias = str | Callable[[], AnyEnv]


def makers_of(
    env: EnvMaker | Sequence[EnvMaker], lanes: int | None, kwargs: dict[str, Any]
) -> list[Callable[[], AnyEnv]]:
    """What makes the environment of each lane; one and the same object where that is the same."""
    if isinstance(env, str) or callable(env):
        if lanes is None or lanes < 1:
            raise ValueError(f"a pool has one lane or more; got lanes={lanes}")
        return [_maker(env, kwargs)] * lanes
    if lanes not in (None, len(env)) or not env:
        raise ValueError(f"there are {len(env)} makers of environments, and lanes={lanes}")
    known: dict[str | int, Callable[[], AnyEnv]] = {}
    return [
        known.setdefault(one if isinstance(one, str) else id(one), _maker(one, kwargs))
        for one in env
    ]


def _maker(env: EnvMaker, kwargs: dict[str, Any]) -> Callable[[], AnyEnv]:
    if isinstance(env, str):
        return partial(gym.make, env, **kwargs)
    if kwargs:
        raise ValueError("env_kwargs are for ids: let the function pass its own arguments")
    return env


def limits_of(given: float | Sequence[float | None] | None, lanes: int) -> list[float | None]:
    """How long each lane may take for one thing."""
    if given is None or isinstance(given, int | float):
        return [given] * lanes
    if len(given) != lanes:
        raise ValueError(f"{len(given)} time limits were given for {lanes} lanes")
    return list(given)


def divide(
    lanes: Sequence[Lane], makers: Sequence[Callable[[], AnyEnv]], workers: int
) -> list[Post]:
    """Divide the lanes among the workers, each with a block of them."""
    count = min(len(lanes), workers)
    if count < 1:
        raise ValueError(f"a pool has one worker or more; got workers={workers}")
    posts = []
    for number in range(count):
        own = range(len(lanes) * number // count, len(lanes) * (number + 1) // count)
        for place, lane in enumerate(own):
            lanes[lane].place = place
        try:
            pickled = cloudpickle.dumps([makers[lane] for lane in own])
        except Exception as error:
            raise ReproductionError(
                f"what makes the environments cannot be sent to a worker ({type(error).__name__}: "
                f"{error}): let it refer to nothing but what it can import, and plain data"
            ) from error
        posts.append(Post(number, pickled, [lanes[lane] for lane in own]))
    return posts
