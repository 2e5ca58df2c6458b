"""Environments that have no state of their own to offer: each is exact by another mechanism."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

import sandboxgym as sg
from tests.peers.twins import assert_forks_exactly

pytestmark = pytest.mark.peers

BOX2D = ["LunarLander-v3", "BipedalWalker-v3"]
GRIDS = ["MiniGrid-DoorKey-5x5-v0", "MiniGrid-Dynamic-Obstacles-5x5-v0", "BabyAI-GoToLocal-v0"]


def assert_exact(name: str, mechanism: Any) -> None:
    envs = [sg.forkable(gym.make(name), mechanism=mechanism) for _ in range(2)]
    twin = gym.make(name)
    try:
        assert_forks_exactly(*envs, twin)
    finally:
        for env in (*envs, twin):
            env.close()


@pytest.mark.parametrize("name", BOX2D)
def test_box2d(name):
    pytest.importorskip("Box2D", reason="needs Box2D: pip install 'sandboxgym[box2d]'")
    assert_exact(name, "process")


def test_a_race_has_a_thread_that_a_fork_would_lose():
    pytest.importorskip("Box2D", reason="needs Box2D: pip install 'sandboxgym[box2d]'")
    with pytest.raises(sg.SandboxGymError, match="thread"):
        assert_exact("CarRacing-v3", "process")


@pytest.mark.parametrize("name", BOX2D)
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
    assert_exact(name, "process")


@pytest.mark.parametrize("game", ["Qbert", "TicTacToe3D"])
def test_games_of_ale_with_irregular_frames(game):
    package = pytest.importorskip("ale_py", reason="needs ale-py: pip install 'sandboxgym[ale]'")
    gym.register_envs(package)
    assert_exact(f"ALE/{game}-v5", "process")
