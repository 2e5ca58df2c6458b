"""Registering environments with Gymnasium so that what `gym.make` returns is forkable."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from sandboxgym.core.front import Forkable


def register(id: str, entry_point: Any, **kwargs: Any) -> None:  # noqa: A002
    """Register a `ForkableEnv` like `gymnasium.register`, with `Forkable` as outermost wrapper.

    Args:
        id: The Gymnasium id, "namespace/Name-v0".
        entry_point: The `ForkableEnv` subclass, or "module:Class".
        **kwargs: As for `gymnasium.register`.
    """
    outer = tuple(kwargs.pop("additional_wrappers", ()))
    gym.register(
        id=id,
        entry_point=entry_point,
        additional_wrappers=(*outer, Forkable.wrapper_spec()),
        **kwargs,
    )


def register_all() -> None:
    """Register every environment of this package."""
    register(
        "sandboxgym/ALFWorld-v0",
        "sandboxgym.sandboxes.text.alfworld:ALFWorldEnv",
        max_episode_steps=50,
    )
    register(
        "sandboxgym/Repo-v0",
        "sandboxgym.sandboxes.repo.env:RepoEnv",
        max_episode_steps=50,
    )
    register(
        "sandboxgym/SWEBench-v0",
        "sandboxgym.sandboxes.repo.swebench.env:SWEBenchEnv",
        max_episode_steps=50,
    )
