"""Registering environments with Gymnasium so that what `gym.make` returns is forkable."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from sandboxgym.core.front import Forkable
from sandboxgym.mechanisms.state_api import register_native


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
    """Register every environment of this package, and the state APIs of those of others."""
    register_native("ale_py.env:AtariEnv", "sandboxgym.sandboxes.classic.ale:AtariState")
    register_native("gymnasium.envs.mujoco", "sandboxgym.sandboxes.classic.mujoco:MujocoState")
    for name in ("classic_control", "toy_text.blackjack"):
        register_native(f"gymnasium.envs.{name}", "sandboxgym.sandboxes.classic.drawing:DrawnState")
    for name in ("cliffwalking:CliffWalkingEnv", "frozen_lake:FrozenLakeEnv", "taxi:TaxiEnv"):
        register_native(
            f"gymnasium.envs.toy_text.{name}", "sandboxgym.sandboxes.classic.toy_text:TableState"
        )
    gym.register("sandboxgym/Crafter-v0", "sandboxgym.sandboxes.classic.crafter:CrafterEnv")
    gym.register("sandboxgym/NetHack-v0", "sandboxgym.sandboxes.classic.nethack:NetHackEnv")
    register(
        "sandboxgym/ALFWorld-v0",
        "sandboxgym.sandboxes.text.alfworld:ALFWorldEnv",
        max_episode_steps=50,
    )
    for name, entry_point, limit in (
        ("TextWorld", "textworld:TextWorldEnv", None),
        ("Jericho", "jericho:JerichoEnv", None),
        ("ScienceWorld", "scienceworld:ScienceWorldEnv", 100),
        ("TextWorldExpress", "textworld_express:TextWorldExpressEnv", 100),
        ("StockALFWorld", "stock_alfworld:StockALFWorldEnv", 50),
    ):
        register(
            f"sandboxgym/{name}-v0",
            f"sandboxgym.sandboxes.text.{entry_point}",
            max_episode_steps=limit,
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
    for name, entry_point, limit in (
        ("Browser", "browser.env:BrowserEnv", None),
        ("MiniWoB", "browser.miniwob.env:MiniWoBEnv", 50),
        ("WebShop", "webshop.env:WebShopEnv", 100),
        ("WebShopBrowser", "webshop.browser_env:WebShopBrowserEnv", 100),
    ):
        register(
            f"sandboxgym/{name}-v0", f"sandboxgym.sandboxes.{entry_point}", max_episode_steps=limit
        )
