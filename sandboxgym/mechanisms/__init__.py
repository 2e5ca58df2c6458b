"""Ways to make an environment forkable, best first; `forkable` picks one."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym

from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import NotForkableError
from sandboxgym.mechanisms.foreign import Factory
from sandboxgym.mechanisms.replay import ReplayEnv
from sandboxgym.mechanisms.state_api import StateApi, register_native

__all__ = ["ReplayEnv", "StateApi", "forkable", "register_native"]


def forkable(
    env: gym.Env[Any, Any],
    mechanism: Literal["auto", "native", "replay"] = "auto",
    *,
    factory: Factory | None = None,
) -> gym.Env[Any, Any]:
    """Make an environment forkable.

    Args:
        env: Any Gymnasium environment, with any wrappers.
        mechanism: "native" uses the environment's own state hooks and returns `env` as it is;
            "replay" repeats the actions and verifies the result; "auto" takes native where the
            environment is a `ForkableEnv`, else replay.
        factory: Makes another such environment, for forks of environments that `gymnasium.make`
            did not build.

    Raises:
        NotForkableError: "native" was asked of an environment without state hooks.
        ValueError: There is no such mechanism.
    """
    native = isinstance(env.unwrapped, ForkableEnv)
    if mechanism not in ("auto", "native", "replay"):
        raise ValueError(f"mechanism {mechanism!r} is not one of 'auto', 'native', 'replay'")
    if mechanism == "native" and not native:
        raise NotForkableError(
            f"{type(env.unwrapped).__name__} has no state hooks: use mechanism='replay', or derive "
            "it from sandboxgym.ForkableEnv and implement get_state and set_state"
        )
    if native and mechanism != "replay":
        return env
    return ReplayEnv(env, factory)
