"""Environments that have no state of their own to offer: each is exact by another mechanism."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

import sandboxgym as sg
from tests.peers.twins import assert_forks_exactly

pytestmark = pytest.mark.peers

BOX2D = ["LunarLander-v3", "BipedalWalker-v3", "CarRacing-v3"]
GRIDS = ["MiniGrid-DoorKey-5x5-v0", "MiniGrid-Dynamic-Obstacles-5x5-v0", "BabyAI-GoToLocal-v0"]


def assert_process_is_exact(make: Any, **kwargs: Any) -> None:
    envs = [sg.forkable(make(), mechanism="process", factory=make) for _ in range(2)]
    twin = make()
    try:
        assert_forks_exactly(*envs, twin, **kwargs)
    finally:
        for env in (*envs, twin):
            env.close()


@pytest.mark.parametrize("name", BOX2D)
def test_box2d(name):
    pytest.importorskip("Box2D", reason="needs Box2D: pip install 'sandboxgym[box2d]'")
    assert_process_is_exact(lambda: gym.make(name))


@pytest.mark.parametrize("name", BOX2D[:2])
def test_box2d_offers_no_state(name):
    pytest.importorskip("Box2D", reason="needs Box2D: pip install 'sandboxgym[box2d]'")
    with pytest.raises(sg.SandboxGymError, match="plain data"):
        sg.forkable(gym.make(name), mechanism="native")


@pytest.mark.parametrize("name", GRIDS)
def test_minigrid(name):
    package = pytest.importorskip(
        "minigrid", reason="needs MiniGrid: pip install 'sandboxgym[minigrid]'"
    )
    gym.register_envs(package)
    assert_process_is_exact(lambda: gym.make(name))


@pytest.mark.parametrize("game", ["Qbert", "TicTacToe3D"])
def test_games_of_ale_with_irregular_frames(game):
    package = pytest.importorskip("ale_py", reason="needs ale-py: pip install 'sandboxgym[ale]'")
    gym.register_envs(package)
    assert_process_is_exact(lambda: gym.make(f"ALE/{game}-v5"))
