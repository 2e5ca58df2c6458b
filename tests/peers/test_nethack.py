from __future__ import annotations

import gymnasium as gym
import pytest

import sandboxgym as sg
from sandboxgym.core.digest import digest
from sandboxgym.core.plain import owned
from tests.peers.twins import assert_equal, assert_forks_exactly, play_alike, step

nle = pytest.importorskip("nle", reason="needs NLE: pip install 'sandboxgym[nle]'")
pytestmark = pytest.mark.peers

from nle import nethack  # noqa: E402 - after the check

from sandboxgym.sandboxes.classic.nethack import NetHackEnv  # noqa: E402


def test_the_same_seed_gives_the_same_game():
    play_alike(NetHackEnv(), NetHackEnv(), seed=0, steps=300)


def test_as_published_it_does_not():
    """Why seeds are set by `NetHackEnv`: if NLE ever takes them in `reset`, it need not."""
    gym.register_envs(nle)
    env = gym.make("NetHackScore-v0", disable_env_checker=True)
    assert digest(owned(env.reset(seed=0)[0])) != digest(owned(env.reset(seed=0)[0]))


def test_what_was_observed_does_not_change_later():
    env = NetHackEnv()
    obs, _ = env.reset(seed=0)
    before = digest(owned(obs))
    for action in range(10):
        env.step(action)
    assert digest(obs) == before


def test_forks_are_exact_by_process():
    envs = [sg.forkable(NetHackEnv(), mechanism="process", factory=NetHackEnv) for _ in range(2)]
    try:
        assert_forks_exactly(*envs, NetHackEnv(), trips=8)
    finally:
        for env in envs:
            env.close()


ACTIONS = nethack.ACTIONS + tuple(nethack.WizardCommand)
NUMBER = {action.value: number for number, action in enumerate(ACTIONS)}


def wizard() -> NetHackEnv:
    return NetHackEnv(
        "NLE", wizard=True, actions=ACTIONS, allow_all_modes=True, allow_all_yn_questions=True
    )


def press(env: gym.Env, keys: list[int]) -> list[object]:
    return [step(env, NUMBER[key]) for key in keys]


def to_level(number: int) -> list[int]:
    return [nethack.WizardCommand.WIZLEVELPORT.value, ord(str(number)), ord("\r")]


def test_levels_in_files_are_not_shared_among_forks():
    """A level that is left becomes a file: each fork has to come back to its own."""
    env, twin = sg.forkable(wizard(), mechanism="process", factory=wizard), wizard()
    try:
        env.reset(seed=1)
        twin.reset(seed=1)
        assert_equal(press(env, to_level(3)), press(twin, to_level(3)))
        moment = sg.snapshot(env)
        (fork,) = sg.fork(env, 1)
        press(fork, [*to_level(1), *map(ord, "jjjjsss"), *to_level(3)])
        fork.close()
        assert_equal(press(env, to_level(1)), press(twin, to_level(1)))
        press(env, [*map(ord, "llllsss"), *to_level(2)])
        sg.restore(env, moment)
        other = wizard()
        other.reset(seed=1)
        press(other, to_level(3))
        assert_equal(press(env, to_level(1)), press(other, to_level(1)))
        other.close()
    finally:
        env.close()
        twin.close()
