from __future__ import annotations

import gymnasium as gym
import pytest

import sandboxgym as sg
from sandboxgym.core import errors
from sandboxgym.core.digest import first_difference


def play(env, actions):
    return [list(env.step(a)) for a in actions]


@pytest.fixture
def cart():
    env = sg.forkable(gym.make("CartPole-v1"), "replay")
    env.reset(seed=3)
    return env


def test_any_gymnasium_environment_forks_by_replay(cart):
    play(cart, [0, 1, 0])
    (twin,) = sg.fork(cart, 1)
    assert first_difference(play(cart, [1, 1]), play(twin, [1, 1])) is None
    assert twin.fidelity.cost == "linear in depth"


def test_a_replay_survives_a_file(cart, tmp_path):
    play(cart, [0, 1])
    cart.snapshot().save(tmp_path / "cart.snap")
    future = play(cart, [1])
    other = sg.forkable(gym.make("CartPole-v1"), "replay")
    other.restore(sg.Snapshot.load(tmp_path / "cart.snap"))
    assert first_difference(play(other, [1]), future) is None


def test_an_unseeded_reset_can_be_replayed(cart):
    cart.reset()
    play(cart, [0])
    snap = cart.snapshot()
    cart.reset()
    cart.restore(snap)


def test_a_reseeded_fork_is_replayed_with_its_seed():
    env = sg.forkable(gym.make("FrozenLake-v1", is_slippery=True), "replay")
    env.reset(seed=1)
    env.step(1)
    snap = env.snapshot()
    outcomes = set()
    for seed in range(12):
        env.restore(snap, seed=seed)
        outcomes.add(env.step(1)[0])
        later = env.snapshot()
        if not later.last.ended:
            env.restore(later)
    assert len(outcomes) > 1


class Drifting(gym.Env):
    """Not deterministic: each episode of one instance starts elsewhere."""

    observation_space = gym.spaces.Discrete(100)
    action_space = gym.spaces.Discrete(2)
    episodes = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episodes += 1
        return self.episodes, {}

    def step(self, action):
        return self.episodes, 0.0, False, False, {}


def test_an_environment_that_does_not_repeat_itself_is_refused():
    env = sg.forkable(Drifting(), "replay")
    env.reset(seed=1)
    env.step(0)
    with pytest.raises(errors.SandboxGymError, match=r"could not be put back.*closed"):
        env.restore(env.snapshot())


def test_forking_what_gymnasium_did_not_make_needs_a_factory():
    env = sg.forkable(Drifting(), "replay")
    env.reset(seed=1)
    with pytest.raises(errors.ReproductionError, match="factory"):
        sg.fork(env, 1)
    made = sg.forkable(Drifting(), "replay", factory=Drifting)
    made.reset(seed=1)
    assert sg.fork(made, 1)[0].step(0)[0] == 1


class Faulty(Drifting):
    """Counts its steps; some of them fail after they were counted."""

    def reset(self, *, seed=None, options=None):
        gym.Env.reset(self, seed=seed)
        self.count = 0
        return 0, {}

    def step(self, action):
        self.count += 1
        if action == 1:
            raise RuntimeError("sandbox lost")
        return self.count, 0.0, False, False, {"odd": object()} if action == 2 else {}


@pytest.mark.parametrize("action", [1, 2])
def test_a_step_that_happened_but_was_not_seen_ends_the_episode(action):
    env = sg.forkable(Faulty(), "replay", factory=Faulty)
    env.reset(seed=1)
    env.step(0)
    snap = env.snapshot()
    with pytest.raises((RuntimeError, errors.StateEncodingError)):
        env.step(action)
    with pytest.raises(errors.NotResetError):
        sg.fork(env, 1)
    env.restore(snap)
    assert env.step(0)[0] == 2


def test_wrappers_inside_are_named_and_a_second_stack_needs_a_factory():
    env = sg.forkable(gym.wrappers.TransformReward(gym.make("CartPole-v1"), lambda r: r), "replay")
    env.reset(seed=1)
    env.restore(env.snapshot())
    assert "TransformReward" in str(env.snapshot().spec.kwargs["wrappers"])
    one = sg.forkable(gym.make("CartPole-v1", max_episode_steps=7), "replay")
    one.reset(seed=1)
    other = sg.forkable(gym.make("CartPole-v1", max_episode_steps=8), "replay")
    with pytest.raises(errors.SpecMismatchError, match="max_episode_steps"):
        other.restore(one.snapshot())
