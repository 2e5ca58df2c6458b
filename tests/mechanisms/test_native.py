from __future__ import annotations

import importlib.metadata

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils import EzPickle

import sandboxgym as sg
from sandboxgym.core import errors
from sandboxgym.core.digest import first_difference
from sandboxgym.core.plain import owned
from sandboxgym.mechanisms import state_api
from sandboxgym.mechanisms.attributes import Attributes
from sandboxgym.mechanisms.native import NativeEnv

from .broken import Walk

ENVIRONMENTS = [
    "Acrobot-v1",
    "Blackjack-v1",
    "CartPole-v1",
    "CliffWalking-v1",
    "FrozenLake-v1",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
]


class WalkState(sg.StateApi):
    def get(self, env):
        return {"position": env.position, "visits": env.visits}

    def set(self, env, state):
        env.position, env.visits = state["position"], state["visits"]


@pytest.fixture
def registered():
    """Lets a test register what it likes."""
    before = dict(state_api._registered)
    yield sg.register_native
    state_api._registered.clear()
    state_api._registered.update(before)


def native(name, **kwargs):
    env = gym.make(name, **kwargs)
    return sg.forkable(env, "native")


def play(env, actions):
    return [owned(list(env.step(action))) for action in actions]


def episode(env, steps=30):
    env.action_space.seed(5)
    actions = []
    env.reset(seed=5)
    for _ in range(steps):
        actions.append(env.action_space.sample())
        if any(env.step(actions[-1])[2:4]):
            break
    return actions


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_moment_of_an_episode_comes_back_exactly(name):
    env = native(name)
    actions = episode(env)
    trace = [owned(list(env.reset(seed=5)))]
    moments = [env.snapshot()]
    for action in actions:
        trace.append(play(env, [action])[0])
        moments.append(env.snapshot())
    fresh = native(name)
    for at in reversed(range(len(moments))):
        for other in (env, fresh):
            obs, info = other.restore(moments[at])
            assert first_difference([obs, info], [trace[at][0], trace[at][-1]]) is None
            assert first_difference(play(other, actions[at:]), trace[at + 1 :]) is None


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_it_plays_as_the_plain_environment_does_over_unseeded_resets_too(name):
    env, plain = native(name), gym.make(name)
    actions = episode(env)
    for seed in (5, None, None):
        first = [owned(list(e.reset(seed=seed))) for e in (env, plain)]
        assert first_difference(*first) is None
        for action in actions:
            after = [owned(list(e.step(action))) for e in (env, plain)]
            assert first_difference(*after) is None
            if after[0][2] or after[0][3]:
                break


def test_a_recipe_alone_leads_there_too():
    env = native("FrozenLake-v1")
    env.reset(seed=1)
    env.reset()
    env.step(1)
    snap = env.snapshot()
    other = native("FrozenLake-v1")
    other.restore(snap.drop_state())
    assert other.state_digest() == snap.digest


def test_a_snapshot_survives_a_file(tmp_path):
    env = native("Pendulum-v1")
    env.reset(seed=1)
    env.snapshot().save(tmp_path / "p.snap")
    future = play(env, [np.array([0.5], np.float32)] * 3)
    other = native("Pendulum-v1")
    other.restore(sg.Snapshot.load(tmp_path / "p.snap"))
    assert first_difference(play(other, [np.array([0.5], np.float32)] * 3), future) is None


def test_forks_are_separate():
    env = native("CartPole-v1")
    env.reset(seed=3)
    left, right = sg.fork(env, 2)
    expected = play(env, [1, 1, 1])
    for step in range(3):
        right.step(0)
        assert first_difference(play(left, [1]), expected[step : step + 1]) is None


def test_the_time_limit_counts_on_from_the_restored_step():
    env = native("MountainCar-v0", max_episode_steps=5)
    env.reset(seed=0)
    play(env, [0, 0, 0])
    snap = env.snapshot()
    play(env, [0])
    env.restore(snap)
    assert [step[3] for step in play(env, [0, 0])] == [False, True]


def test_what_is_returned_is_no_part_of_the_state():
    env = native("MountainCarContinuous-v0")
    env.reset(seed=0)
    obs, *_ = env.step(np.array([1.0], np.float32))
    digest = env.state_digest()
    obs[:] = 7
    assert env.state_digest() == digest


def test_attributes_are_those_of_the_environment_inside():
    env = native("CartPole-v1")
    base = env.unwrapped
    base.gravity = 20.0
    assert base.env.gravity == base.gravity == env.get_wrapper_attr("gravity") == 20.0
    assert env.set_wrapper_attr("length", 3.0)
    assert base.env.length == 3.0
    with pytest.raises(AttributeError):
        base.no_such_thing  # noqa: B018


def test_the_generator_is_that_of_the_environment_inside():
    env = native("FrozenLake-v1")
    env.reset(seed=1)
    base = env.unwrapped
    assert base.np_random is base.env.np_random
    snap = env.snapshot()
    kept = base.np_random
    env.restore(snap, seed=4)
    assert base.np_random is base.env.np_random is kept


def test_environments_of_other_arguments_do_not_take_each_others_snapshots():
    one, other = native("FrozenLake-v1"), native("FrozenLake-v1", map_name="8x8")
    one.reset(seed=1)
    with pytest.raises(errors.SpecMismatchError, match="map_name"):
        other.restore(one.snapshot())
    shown = native("FrozenLake-v1", render_mode="ansi")
    shown.restore(one.snapshot())


def test_a_registered_state_api_is_found_by_name_and_by_package(registered):
    for key in ("tests.mechanisms.broken:Walk", "tests.mechanisms", Walk):
        registered(key, "tests.mechanisms.test_native:WalkState")
        env = sg.forkable(Walk(), "native", factory=Walk)
        assert type(env.api).__name__ == "WalkState"
        state_api._registered.clear()


def test_a_subclass_is_not_covered_unless_the_state_api_says_so(registered):
    class Longer(Walk):
        pass

    registered(Walk, WalkState)
    with pytest.raises(errors.NotForkableError, match=r"Longer may\s+add state"):
        sg.forkable(Longer(), "native", factory=Longer)

    class CoversAll(WalkState):
        covers_subclasses = True

    registered(Walk, CoversAll)
    assert sg.forkable(Longer(), "native", factory=Longer).api


def test_a_state_api_that_cannot_be_loaded_is_named(registered):
    registered(Walk, "tests.mechanisms.nowhere:Api")
    with pytest.raises(errors.NotForkableError, match="nowhere:Api cannot be imported"):
        sg.forkable(Walk(), "native", factory=Walk)


def test_a_refusal_of_the_state_api_is_the_reason(registered):
    class Picky(WalkState):
        def refuse(self, env):
            return "goals over 5 are not captured" if env.goal > 5 else None

    registered(Walk, Picky)
    with pytest.raises(errors.NotForkableError, match="goals over 5"):
        sg.forkable(Walk(goal=6.0), "native")
    assert sg.forkable(Walk(goal=4.0), "native").choice.mechanism == "native"


def test_versions_that_a_state_api_names_are_compared(registered):
    class Dependent(WalkState):
        packages = ("msgspec",)

    registered(Walk, Dependent)
    env = sg.forkable(Walk(), "native", factory=Walk)
    env.reset(seed=1)
    snap = env.snapshot()
    assert snap.versions["msgspec"] == importlib.metadata.version("msgspec")
    Dependent.state_version = 2
    with pytest.raises(errors.SnapshotVersionError):
        sg.forkable(Walk(), "native", factory=Walk).restore(snap)


def test_an_unseeded_reset_can_be_given_a_seed(registered):
    class Clocked(Walk):
        def reset(self, *, seed=None, options=None):
            return super().reset(
                seed=np.random.SeedSequence().entropy % 2**31 if seed is None else seed
            )

    class DrawsSeeds(WalkState):
        draws_seeds = True

    registered(Clocked, DrawsSeeds)
    env = sg.forkable(Clocked(), "native", factory=Clocked)
    env.reset(seed=1)
    snap = env.snapshot()
    first = env.reset()
    env.restore(snap)
    assert first_difference(list(env.reset()), list(first)) is None


class Recorded(Walk, EzPickle):
    def __init__(self, goal=8.0):
        EzPickle.__init__(self, goal)
        super().__init__(goal)


def test_a_second_one_is_built_from_what_the_class_recorded():
    env = NativeEnv(Recorded(3.0), Attributes())
    env.reset(seed=1)
    (twin,) = sg.fork(env, 1)
    assert twin.goal == 3.0
    with pytest.raises(errors.SpecMismatchError):
        NativeEnv(Recorded(4.0), Attributes()).restore(env.snapshot())


def test_without_a_record_or_a_factory_there_is_no_fork():
    env = NativeEnv(Walk(), Attributes())
    env.reset(seed=1)
    with pytest.raises(errors.ReproductionError, match="factory"):
        sg.fork(env, 1)
