"""Recipes when something outside of the environment draws from its generators."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import StickyAction
from hypothesis import given
from hypothesis import strategies as st

import sandboxgym as sg
from sandboxgym.core.digest import first_difference
from tests.core.worlds import RandomWalk


class Sampler(RandomWalk):
    """Draws its noise from its own space, as some environments do."""

    observation_space = spaces.Box(-1, 1, (2,), np.float64)

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.observation_space.seed(seed)
        result = super().reset(seed=seed)
        self.position += self.observation_space.sample()[0]
        return result

    def step(self, action):
        self.position += self.observation_space.sample()[0]
        return super().step(action)


def play(env, actions=(1, 2, 0, 1)):
    return [list(env.step(a)) for a in actions]


@pytest.mark.parametrize("cls", [RandomWalk, Sampler])
def test_a_recipe_knows_that_the_generator_was_drawn_from_outside(cls):
    env, twin = cls(), cls()
    env.reset(seed=1)
    for action in (0, 1, 2):
        env.np_random.random()
        env.step(action)
    env.np_random.random()
    snap = env.snapshot()
    future = play(env)
    twin.restore(snap.drop_state())
    assert first_difference(play(twin), future) is None
    later = twin.snapshot()
    future = play(twin)
    env.restore(later.drop_state())
    assert first_difference(play(env), future) is None


def test_a_sampling_policy_leaves_no_trace_in_the_recipe():
    env = RandomWalk()
    env.reset(seed=1)
    for _ in range(5):
        env.step(env.action_space.sample())
    assert env.snapshot().recipe.moved == ()


def test_an_environment_that_samples_its_own_space_after_a_policy_did_is_replayed():
    env = Sampler()
    env.reset(seed=4)
    for action in (0, 1):
        env.observation_space.sample()
        env.step(action)
    snap = env.snapshot()
    future = play(env)
    fresh = Sampler()
    fresh.restore(snap.drop_state())
    assert first_difference(play(fresh), future) is None


def test_a_draw_from_outside_before_a_reseeding_does_not_undo_it():
    env = RandomWalk()
    env.reset(seed=1)
    env.np_random.random()
    env.restore(env.snapshot(), seed=9)
    snap = env.snapshot()
    future = play(env)
    fresh = RandomWalk()
    fresh.restore(snap.drop_state())
    assert first_difference(play(fresh), future) is None


def test_a_wrapper_that_draws_from_the_environments_generator_is_replayed():
    make = lambda: StickyAction(RandomWalk(), 0.5)  # noqa: E731
    env, fresh = make(), make()
    env.reset(seed=1)
    play(env)
    snap = sg.snapshot(env)
    assert snap.recipe.moved
    future = play(env)
    sg.restore(fresh, sg.Snapshot.from_bytes(snap.drop_state().to_bytes()))
    assert first_difference(play(fresh), future) is None


@given(
    st.lists(
        st.sampled_from(["step", "draw", "sample", "restore", "reseed", "recipe"]), max_size=20
    )
)
def test_any_mixture_of_draws_and_restores_is_replayed(doings):
    env: gym.Env = Sampler()
    env.reset(seed=0)
    for n, doing in enumerate(doings):
        if doing == "step":
            env.step(n % 3)
        elif doing == "draw":
            env.np_random.random()
        elif doing == "sample":
            env.observation_space.sample()
        else:
            snap = env.snapshot()
            env = Sampler() if n % 2 else env
            seed = n if doing == "reseed" else None
            env.restore(snap.drop_state() if doing == "recipe" else snap, seed=seed)
    snap = env.snapshot()
    future = play(env)
    fresh = Sampler()
    fresh.restore(snap.drop_state())
    assert first_difference(play(fresh), future) is None
