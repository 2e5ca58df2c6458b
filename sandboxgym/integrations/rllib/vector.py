"""Environments as RLlib's runners want them: a vector environment for each runner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gymnasium.vector import AutoresetMode
from ray.tune.registry import register_env

from sandboxgym.pool.layout import EnvMaker
from sandboxgym.vector import ForkableVectorEnv

MODE = "vector_entry_point"
"""What `config.env_runners(gym_env_vectorize_mode=...)` has to be."""


def register_sandboxes(name: str, env: EnvMaker | Sequence[EnvMaker], **pool: Any) -> str:
    """Let RLlib know of sandboxes by a name; each runner gets a pool of its own.

    Args:
        name: What to call them.
        env: The id of an environment, or a function that makes one.
        **pool: For `ForkableVectorEnv`: env_kwargs, workers, time_limit and so on.

    Returns:
        The name, to be given to `config.environment(...)`.
    """

    def make(context: dict[str, Any]) -> ForkableVectorEnv:
        # RLlib begins the next episode of a lane by the step after the one that ended the last.
        return ForkableVectorEnv(
            env, context["num_envs"], autoreset_mode=AutoresetMode.NEXT_STEP, **pool
        )

    register_env(name, make)
    return name
