"""Wrappers around environments that know nothing of us, as people have them."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers

import sandboxgym as sg
from tests.core.wrapper_rules.exactness import assert_exact


def cart_pole():
    return gym.make("CartPole-v1")


def pendulum():
    return gym.make("Pendulum-v1", max_episode_steps=12)


def frozen_lake():
    return gym.make("FrozenLake-v1")


def breakout(**kwargs):
    return gym.make("ALE/Breakout-v5", frameskip=1, **kwargs)


STACKS = {
    "delayed": lambda: wrappers.DelayObservation(cart_pole(), 2),
    "stacked": lambda: wrappers.FrameStackObservation(cart_pole(), 3),
    "sticky": lambda: wrappers.StickyAction(cart_pole(), 0.5),
    "skipping": lambda: wrappers.MaxAndSkipObservation(cart_pole(), 2),
    "normalized": lambda: wrappers.NormalizeReward(wrappers.NormalizeObservation(pendulum())),
    "clipped": lambda: wrappers.ClipReward(wrappers.ClipAction(pendulum()), -1.0),
    "rescaled": lambda: wrappers.RescaleAction(pendulum(), np.float32(-1), np.float32(1)),
    "timed": lambda: wrappers.TimeAwareObservation(wrappers.FlattenObservation(pendulum())),
    "counted": lambda: wrappers.Autoreset(wrappers.RecordEpisodeStatistics(frozen_lake())),
}
ATARI = {
    "preprocessed": lambda: wrappers.AtariPreprocessing(breakout(), terminal_on_life_loss=True),
    "stacked": lambda: wrappers.FrameStackObservation(wrappers.AtariPreprocessing(breakout()), 4),
    "sticky": lambda: wrappers.StickyAction(
        wrappers.AtariPreprocessing(breakout(repeat_action_probability=0.0)), 0.25
    ),
}


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("before", [0, 11])
def test_gymnasiums_own_environments_go_on_exactly(name, before):
    env = sg.forkable(STACKS[name](), mechanism="native")
    assert env.fidelity.mechanism == "native"
    assert_exact(lambda: sg.forkable(STACKS[name](), mechanism="native"), before=before)


@pytest.mark.parametrize("name", ATARI)
def test_atari_goes_on_exactly(name):
    ale_py = pytest.importorskip("ale_py")
    pytest.importorskip("cv2")
    gym.register_envs(ale_py)

    assert_exact(lambda: sg.forkable(ATARI[name](), mechanism="native"), before=25, after=15)
