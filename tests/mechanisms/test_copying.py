from __future__ import annotations

import gc
import random
import weakref

import gymnasium as gym
import numpy as np
import pytest

import sandboxgym as sg
from sandboxgym.core import errors
from sandboxgym.core.digest import first_difference
from sandboxgym.core.plain import owned
from sandboxgym.mechanisms.copying import CopyEnv, obstacle_to_copying

from .broken import KeepsAnObject, Pickled, Threaded


def play(env, actions):
    return [owned(list(env.step(action))) for action in actions]


@pytest.fixture
def env():
    env = CopyEnv(KeepsAnObject(), KeepsAnObject)
    env.reset(seed=1)
    return env


def test_a_moment_comes_back_exactly_here_and_in_another_instance(env):
    play(env, [0, 1])
    snap = env.snapshot()
    future = play(env, [2, 2, 0])
    env.restore(snap)
    assert first_difference(play(env, [2, 2, 0]), future) is None
    other = env.spawn()
    other.restore(snap)
    assert first_difference(play(other, [2, 2, 0]), future) is None
    assert "replayed_steps" not in {**env.metrics, **other.metrics}


def test_what_is_held_stays_as_it_was_however_often_it_is_restored(env):
    snap = env.snapshot()
    for _ in range(3):
        env.restore(snap)
        assert play(env, [1])[0][-1] == {"trail": [1]}


def test_forks_are_separate(env):
    left, right = sg.fork(env, 2)
    play(right, [0, 0])
    right.close()
    assert first_difference(play(left, [1, 2]), play(env, [1, 2])) is None


def test_a_snapshot_in_a_file_holds_no_copy_and_is_replayed(env, tmp_path):
    play(env, [0, 1])
    env.snapshot().save(tmp_path / "w.snap")
    future = play(env, [2])
    other = env.spawn()
    other.restore(sg.Snapshot.load(tmp_path / "w.snap"))
    assert first_difference(play(other, [2]), future) is None
    assert other.metrics["replayed_steps"] == 2


def test_the_copy_goes_with_the_last_snapshot_that_holds_it(env):
    snap = env.snapshot()
    held = weakref.ref(snap.held.env)
    dropped = snap.drop_state()
    del snap
    gc.collect()
    assert held() is None
    env.restore(dropped)


def test_the_spaces_are_those_of_the_copy():
    env = CopyEnv(gym.make("CartPole-v1"))
    env.reset(seed=1)
    env.action_space.seed(3)
    env.restore(env.snapshot())
    assert env.action_space is env.env.action_space
    snap = env.snapshot()
    samples = [env.action_space.sample() for _ in range(20)]
    env.restore(snap)
    assert [env.action_space.sample() for _ in range(20)] == samples


def test_global_generators_are_not_touched(env):
    snap = env.snapshot()
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    env.restore(snap)
    assert before == (random.getstate(), np.random.get_state()[1].tolist())


def test_what_cannot_be_copied_says_so():
    env = CopyEnv(Threaded(), Threaded)
    env.reset(seed=1)
    with pytest.raises(errors.UncapturedStateError, match=r"cannot be copied .*lock"):
        env.snapshot()
    env.close()


def test_an_environment_that_is_pickled_by_its_arguments_is_known():
    assert "Pickled is an EzPickle" in obstacle_to_copying(Pickled())
    limited = gym.wrappers.TimeLimit(Pickled(), 5)
    assert "Pickled is an EzPickle" in obstacle_to_copying(limited)
    assert obstacle_to_copying(gym.make("CartPole-v1")) is None
