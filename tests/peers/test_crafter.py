from __future__ import annotations

import pytest
from gymnasium.utils.env_checker import check_env

import sandboxgym as sg
from sandboxgym.core.digest import digest
from sandboxgym.core.plain import owned
from tests.peers.twins import assert_forks_exactly, play_alike

pytest.importorskip("crafter", reason="needs Crafter: pip install 'sandboxgym[crafter]'")
pytestmark = pytest.mark.peers

from sandboxgym.sandboxes.classic.crafter import CrafterEnv  # noqa: E402 - after the check

SMALL = (32, 32)


def make() -> CrafterEnv:
    return CrafterEnv(area=SMALL)


def episode(env: CrafterEnv, seed: int, steps: int = 150) -> list[str]:
    env.action_space.seed(seed)
    seen = [digest(list(owned(env.reset(seed=seed))))]
    for _ in range(steps):
        result = owned(env.step(env.action_space.sample()))
        seen.append(digest(list(result)))
        if result[2] or result[3]:
            break
    return seen


def test_it_speaks_gymnasium():
    check_env(CrafterEnv(area=SMALL, render_mode="rgb_array"), skip_render_check=True)


def test_the_same_seed_gives_the_same_episode():
    play_alike(make(), make(), seed=0, steps=150)


def test_as_published_it_does_not():
    """The trap that `OrderedWorld` is there for: if Crafter ever closes it, it can go."""
    envs = [CrafterEnv(area=SMALL, in_order=False) for _ in range(2)]
    assert any(episode(envs[0], seed) != episode(envs[1], seed) for seed in range(4))


def test_an_episode_ends_at_its_length():
    env = CrafterEnv(area=SMALL, length=5)
    env.reset(seed=0)
    results = [env.step(0) for _ in range(5)]
    assert [result[2:4] for result in results] == [(False, False)] * 4 + [(False, True)]


def test_info_is_not_the_players_own():
    env = make()
    env.reset(seed=0)
    info = env.step(0)[4]
    info["player_pos"] += 1000
    assert env.step(0)[4]["player_pos"].max() < 1000


def test_forks_are_exact_by_process():
    envs = [sg.forkable(make(), mechanism="process", factory=make) for _ in range(2)]
    try:
        assert_forks_exactly(*envs, make(), trips=6)
    finally:
        for env in envs:
            env.close()
