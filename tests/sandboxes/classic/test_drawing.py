from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import sandboxgym as sg

pytest.importorskip(
    "pygame", reason='drawing needs pygame: pip install "gymnasium[classic-control]"'
)

TAXI = "Taxi-v4" if "Taxi-v4" in gym.registry else "Taxi-v3"
DRAWN = [
    *("Acrobot-v1", "CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1"),
    *("Blackjack-v1", "CliffWalking-v1", "FrozenLake-v1", TAXI),
]
pytestmark = pytest.mark.filterwarnings("ignore:.*is out of date")


def drawing(name):
    env = sg.forkable(gym.make(name, render_mode="rgb_array"), mechanism="native")
    env.action_space.seed(0)
    env.reset(seed=3)
    return env


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_on_is_no_state(name):
    env = drawing(name)
    before = sg.snapshot(env)
    env.render()
    assert sg.snapshot(env).digest == before.digest


@pytest.mark.parametrize("name", DRAWN)
def test_a_restored_environment_draws_what_it_drew(name):
    env = drawing(name)
    moment = sg.snapshot(env)
    picture = env.render()
    env.step(env.action_space.sample())
    env.render()
    sg.restore(env, moment)
    assert np.array_equal(env.render(), picture)
    (twin,) = sg.fork(env, 1)
    assert np.array_equal(twin.render(), picture)
    twin.close()


def test_a_moment_after_a_drawing_is_restored_where_nothing_was_drawn():
    env = drawing("CartPole-v1")
    env.render()
    env.step(1)
    other = drawing("CartPole-v1")
    obs, _ = sg.restore(other, sg.snapshot(env))
    assert np.array_equal(other.step(1)[0], env.step(1)[0])
    assert np.array_equal(other.render(), env.render())
    assert obs.shape == (4,)


def test_what_only_seems_to_be_drawn_on_is_refused():
    env = drawing("CartPole-v1")
    env.unwrapped.env.clock = 7
    with pytest.raises(
        sg.SandboxGymError, match=r"CartPoleEnv.clock is 7, and not something to draw"
    ):
        sg.snapshot(env)


def test_a_subclass_may_keep_state_there_and_is_not_taken_for_it():
    from gymnasium.envs.classic_control.cartpole import CartPoleEnv

    class Timed(CartPoleEnv):
        pass

    with pytest.raises(sg.SandboxGymError, match="may add state to it"):
        sg.forkable(Timed(), mechanism="native", factory=Timed)
