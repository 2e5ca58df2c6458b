"""A snapshot shares nothing with the environment and the wrappers that it was taken from."""

from __future__ import annotations

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import sandboxgym as sg
from sandboxgym.core import errors
from tests.core.worlds import RandomWalk


class Diary(gym.Wrapper):
    """Writes into a list and an array that it keeps, and shows the array."""

    def __init__(self, env):
        super().__init__(env)
        self.pages: list[int] = []
        self.cover = np.zeros(1)

    def reset(self, *, seed=None, options=None):
        self.pages.clear()
        self.cover[:] = 0
        return self.env.reset(seed=seed)

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.pages.append(action)
        self.cover[:] = len(self.pages)
        return obs, reward, terminated, truncated, {**info, "cover": self.cover.copy()}


def put(diary, state):
    diary.pages = state["pages"]


sg.register_wrapper_state(
    Diary,
    lambda diary: {"pages": diary.pages},
    put,
    view=lambda diary, last: replace(last, info={**last.info, "cover": diary.cover}),
)


def test_a_wrapper_that_keeps_the_state_it_was_given_does_not_write_into_the_snapshot():
    env = Diary(RandomWalk())
    env.reset(seed=1)
    env.step(1)
    snap = sg.snapshot(env)
    sg.restore(env, snap)
    env.step(2)
    assert snap.wrappers[0].state == {"pages": [1]}


def test_a_view_that_shows_a_live_buffer_does_not_reach_into_the_snapshot():
    env = Diary(RandomWalk())
    env.reset(seed=1)
    env.step(1)
    snap = sg.snapshot(env)
    env.step(2)
    assert snap.last.info["cover"] == [1.0]


def test_arguments_that_the_environment_changes_later_are_copied():
    class Growing(RandomWalk):
        def __init__(self):
            super().__init__()
            self.settings = {"levels": [1]}

        def spec_kwargs(self):
            return self.settings

    env = Growing()
    env.reset(seed=1)
    snap = env.snapshot()
    env.settings["levels"].append(2)
    assert snap.spec.kwargs == {"levels": [1]}


def test_an_array_with_more_than_its_elements_is_refused():
    class Masked(RandomWalk):
        def get_state(self):
            return {"seen": np.ma.array([1, 2], mask=[True, False])}

    env = Masked()
    env.reset(seed=1)
    with pytest.raises(errors.StateEncodingError, match=r"state\['seen'\] is a .*MaskedArray"):
        env.snapshot()


def test_a_generator_that_is_held_elsewhere_too_follows_a_new_seed():
    class Holding(RandomWalk):
        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.held = self.np_random
            return self._observation(), self._info()

    env = Holding()
    env.reset(seed=1)
    env.restore(env.snapshot(), seed=5)
    assert env.held is env.np_random
