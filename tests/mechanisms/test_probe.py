from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections import deque

import gymnasium as gym
import numpy as np
import pytest

from sandboxgym.core.errors import InvalidActionError
from sandboxgym.mechanisms.attributes import Attributes
from sandboxgym.mechanisms.copying import CopyEnv
from sandboxgym.mechanisms.fingerprint import fingerprint
from sandboxgym.mechanisms.native import NativeEnv
from sandboxgym.mechanisms.probe import probe
from sandboxgym.mechanisms.replay import ReplayEnv
from sandboxgym.mechanisms.survey import survey
from sandboxgym.mechanisms.watch import Watch

from . import broken
from .broken import KeepsAnObject, Walk


def copied(cls):
    return probe(lambda: CopyEnv(cls(), cls))


def native(cls, api=Attributes):
    return probe(lambda: NativeEnv(cls(), api(), cls))


@pytest.mark.parametrize("cls", [Walk, KeepsAnObject, broken.NeverTheSame])
def test_a_faithful_copy_passes(cls):
    assert copied(cls) is None


@pytest.mark.parametrize(
    "cls",
    [
        broken.CountsInAModule,
        broken.ListOfTheClass,
        broken.GlobalGenerator,
        broken.Pickled,
        broken.CopiesAfresh,
        broken.Entropy,
        broken.FileOnDisk,
        broken.Threaded,
    ],
)
def test_a_copy_that_is_none_is_found_out(cls):
    assert copied(cls) is not None


def test_siblings_that_share_are_found_out_where_restores_are_verified():
    for cls in (broken.CountsInAModule, broken.ListOfTheClass, broken.GlobalGenerator):
        assert "sibling" in probe(lambda cls=cls: ReplayEnv(cls(), cls), restores=False)
    assert probe(lambda: ReplayEnv(Walk(), Walk), restores=False) is None


class Forgets(Attributes):
    """A state API that leaves one attribute as it finds it."""

    left_alone = frozenset({"visits"})


def test_a_state_that_misses_something_is_found_out():
    assert native(Walk) is None
    assert "forked at step 9, its sibling going elsewhere, move 10" in native(Walk, Forgets)


class CountsEpisodes(Walk):
    """What it keeps shows only in the next episode."""

    episodes = 0

    def reset(self, *, seed=None, options=None):
        self.episodes += 1
        return super().reset(seed=seed)

    def report(self):
        return {"episodes": self.episodes}


class ForgetsEpisodes(Attributes):
    left_alone = frozenset({"episodes"})


def test_what_shows_in_the_next_episode_only_is_found_out():
    assert native(CountsEpisodes) is None
    assert native(CountsEpisodes, ForgetsEpisodes) is not None


class Impure(Walk):
    """Being looked at changes it."""

    looks = 0


class Looks(Attributes):
    def get(self, env):
        env.position += 0.5
        return super().get(env)


def test_a_snapshot_that_changes_something_is_found_out():
    assert native(Impure, Looks) is not None


class Refuses(Walk):
    """Takes some actions only, and says so."""

    def step(self, action):
        if action == 0:
            raise InvalidActionError("not that way")
        return super().step(action)


class Breaks(Walk):
    def step(self, action):
        if len(self.visits) == 6:
            raise RuntimeError("the bridge is down")
        return super().step(action)


class BreaksAtOnce(Walk):
    def step(self, action):
        raise RuntimeError("the bridge is down")


def test_actions_that_are_refused_are_replaced():
    assert survey(Refuses).obstacle is None
    assert native(Refuses) is None


def test_an_environment_that_breaks_is_probed_as_far_as_it_goes():
    assert survey(Breaks).obstacle is None
    assert native(Breaks) is None
    assert "the bridge is down" in survey(BreaksAtOnce).obstacle


def test_arrays_are_actions_too():
    def make():
        return NativeEnv(gym.make("Pendulum-v1").unwrapped, Attributes())

    assert probe(make) is None


def test_scratch_instances_are_closed():
    made = []

    class Counted(Walk):
        def __init__(self):
            super().__init__()
            made.append(self)
            self.closed = 0

        def close(self):
            self.closed += 1

    survey(Counted)
    probe(lambda: NativeEnv(Counted(), Attributes(), Counted))
    assert len(made) == 5
    assert all(env.closed == 1 for env in made)


@pytest.mark.parametrize("cls", [Walk, KeepsAnObject, broken.CopiesAfresh, broken.Threaded])
def test_a_survey_of_what_repeats_itself_finds_no_drift(cls):
    assert survey(cls).drift is None


@pytest.mark.parametrize("cls", [broken.NeverTheSame, broken.Entropy])
def test_a_survey_says_where_an_episode_was_another(cls):
    assert "seed 11 again in the same instance" in survey(cls).drift


def test_a_survey_names_what_instances_share():
    assert "_steps_of_all" in survey(broken.CountsInAModule).sharing
    assert "ListOfTheClass.shared" in survey(broken.ListOfTheClass).sharing
    assert "DefaultArgument.step" in survey(broken.DefaultArgument).sharing
    assert "numpy.random" in survey(broken.GlobalGenerator).sharing
    assert survey(Walk).sharing is None


def test_a_survey_names_what_happens_outside_of_the_memory():
    assert "diary" in survey(broken.FileOnDisk).effects
    assert survey(Walk).effects is None


over = threading.Event()


def start_a_thread():
    threading.Thread(target=over.wait).start()


def start_a_process():
    subprocess.run([sys.executable, "-c", ""], check=True)


def listen():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))


@pytest.mark.parametrize(
    ("act", "words"),
    [(start_a_thread, "thread"), (start_a_process, "process"), (listen, "socket")],
)
def test_a_watch_hears_of_effects(act, words):
    with Watch(Walk()) as watch:
        act()
    over.set()
    assert words in watch.effects
    with Watch(Walk()) as watch:
        pass
    assert watch.effects is None


def test_a_watch_does_not_hear_other_threads(tmp_path):
    with Watch(Walk()) as watch:
        thread = threading.Thread(target=(tmp_path / "other").write_text, args=("x",))
        thread.start()
        thread.join()
    assert watch.files == []


class Thing:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: [1, {"a": n}],
        lambda n: Thing(inner=Thing(n=n)),
        lambda n: np.arange(3) + n,
        lambda n: deque([n]),
        lambda n: {n},
        lambda n: np.random.default_rng(n),
        lambda n: (1, 2.0 + n, None),
    ],
)
def test_a_fingerprint_tells_values_apart(make):
    assert fingerprint(make(1)) == fingerprint(make(1))
    assert fingerprint(make(1)) != fingerprint(make(2))


def test_a_fingerprint_of_what_contains_itself_ends():
    loop: list = [1]
    loop.append(loop)
    assert fingerprint(loop) == fingerprint(loop)


class Proxy:
    """Stands for something that is not there."""

    def __getattribute__(self, name):
        raise RuntimeError("not now")


def test_a_fingerprint_runs_no_code_of_what_it_looks_at():
    assert fingerprint([Proxy()]) == fingerprint([Proxy()])
