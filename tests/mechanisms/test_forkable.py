from __future__ import annotations

import random

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import (
    NormalizeObservation,
    RecordEpisodeStatistics,
    TimeLimit,
    TransformReward,
)

import sandboxgym as sg
from sandboxgym.core import errors
from sandboxgym.core.digest import first_difference
from sandboxgym.core.plain import owned
from sandboxgym.mechanisms import choosing
from sandboxgym.mechanisms.process import ProcessEnv
from tests.core.worlds import RandomWalk

from . import broken
from .broken import KeepsAnObject, Walk


@pytest.fixture(autouse=True)
def nothing_remembered():
    choosing._remembered.clear()


@pytest.fixture
def made():
    """Collects environments and closes them."""
    environments = []
    yield lambda env: environments.append(env) or env
    for env in environments:
        env.close()


def play(env, actions):
    return [owned(list(env.step(action))) for action in actions]


def forks_exactly(env):
    """Whether a fork goes on as its parent does."""
    env.reset(seed=3)
    play(env, [1, 0])
    (twin,) = sg.fork(env, 1)
    same = first_difference(play(env, [1, 1, 0]), play(twin, [1, 1, 0])) is None
    twin.close()
    return same


CHOSEN = [
    (Walk, "native"),
    (KeepsAnObject, "process"),
    (broken.CountsInAModule, "process"),
    (broken.ListOfTheClass, "process"),
    (broken.ListOfTheClassAmongPlainData, "process"),
    (broken.DefaultArgument, "process"),
    (broken.GlobalGenerator, "process"),
    (broken.Pickled, "process"),
    (broken.CopiesAfresh, "process"),
    (broken.NeverTheSame, "process"),
    (broken.FileOnDisk, "process"),
    (broken.Threaded, "replay"),
    (broken.Slotted, "process"),
]


@pytest.mark.parametrize(("cls", "mechanism"), CHOSEN)
def test_auto_takes_the_first_mechanism_that_is_exact(cls, mechanism, made):
    env = made(sg.forkable(cls(), factory=cls))
    assert env.choice.mechanism == env.fidelity.mechanism == mechanism
    assert forks_exactly(env)


IN_ONE_PROCESS = [
    (KeepsAnObject, "copy"),
    (broken.CountsInAModule, None),
    (broken.ListOfTheClass, None),
    (broken.ListOfTheClassAmongPlainData, None),
    (broken.DefaultArgument, None),
    (broken.GlobalGenerator, None),
    (broken.Pickled, "replay"),
    (broken.CopiesAfresh, "replay"),
    (broken.NeverTheSame, "copy"),
    (broken.FileOnDisk, "replay"),
    (broken.Threaded, "replay"),
    (broken.Slotted, "copy"),
    (broken.Entropy, None),
]


@pytest.mark.parametrize(("cls", "mechanism"), IN_ONE_PROCESS)
def test_where_no_process_can_be_forked_it_is_still_never_wrong(cls, mechanism, made, monkeypatch):
    monkeypatch.setattr("sandboxgym.mechanisms.ladder.sys.platform", "darwin")
    if mechanism is None:
        with pytest.raises(errors.NotForkableError, match="needs Linux"):
            sg.forkable(cls(), factory=cls)
        return
    env = made(sg.forkable(cls(), factory=cls))
    assert env.choice.mechanism == mechanism
    assert forks_exactly(env)


def test_an_environment_that_is_never_the_same_is_refused_with_the_whole_account():
    with pytest.raises(errors.NotForkableError) as refusal:
        sg.forkable(broken.Entropy(), factory=broken.Entropy)
    text = str(refusal.value)
    assert text.startswith("Entropy cannot be made forkable")
    for mechanism in ("native", "process", "copy", "replay"):
        assert f"not by {mechanism}: " in text
    assert "does not repeat itself: seed 11" in text


def test_the_choice_can_be_read(made):
    env = made(sg.forkable(broken.Threaded(), factory=broken.Threaded))
    lines = str(env.choice).splitlines()
    assert lines[0].startswith("Threaded forks by replay: ")
    assert lines[1] == "  captures memory, portable, exact, restores at a cost linear in depth"
    assert [line.split(":")[0] for line in lines[2:]] == [
        "  not by native",
        "  not by process",
        "  not by copy",
    ]
    assert "Threaded.over is a threading.Event" in lines[2]
    assert "thread" in lines[3]


def test_a_fork_knows_the_choice_too(made):
    for name in ("CartPole-v1", "MountainCar-v0"):
        env = made(sg.forkable(gym.make(name)))
        env.reset(seed=1)
        (twin,) = sg.fork(env, 1)
        assert made(twin).choice is env.choice


def test_what_does_not_repeat_itself_is_not_portable(made):
    env = made(sg.forkable(broken.NeverTheSame(), factory=broken.NeverTheSame))
    assert not env.fidelity.portable
    assert "not portable" in str(env.choice)
    env.reset(seed=1)
    (twin,) = sg.fork(env, 1)
    assert not made(twin).fidelity.portable
    with pytest.raises(errors.SnapshotError, match="not deterministic"):
        env.restore(env.snapshot().drop_state())


@pytest.mark.parametrize("mechanism", ["native", "process", "copy", "replay"])
def test_each_mechanism_can_be_asked_for(mechanism, made):
    env = made(sg.forkable(gym.make("CartPole-v1"), mechanism))
    assert env.choice.mechanism == env.fidelity.mechanism == mechanism
    assert forks_exactly(env)


def test_a_copy_is_probed_even_when_it_is_asked_for():
    for cls in (broken.CopiesAfresh, broken.Pickled, broken.GlobalGenerator, broken.FileOnDisk):
        with pytest.raises(errors.NotForkableError, match="not by copy"):
            sg.forkable(cls(), "copy", factory=cls)


def test_native_is_probed_where_nothing_is_registered():
    cls = broken.ListOfTheClassAmongPlainData
    with pytest.raises(errors.NotForkableError, match="shared"):
        sg.forkable(cls(), "native", factory=cls)


def test_there_is_no_such_mechanism():
    with pytest.raises(ValueError, match="not one of auto, native"):
        sg.forkable(gym.make("CartPole-v1"), "magic")


def test_nothing_is_taken_on_trust_where_no_second_one_can_be_built():
    with pytest.raises(errors.NotForkableError, match="factory="):
        sg.forkable(Walk())
    assert sg.forkable(Walk(), "replay").choice.mechanism == "replay"


def test_a_scratch_instance_that_fails_is_the_reason():
    with pytest.raises(errors.NotForkableError, match="no game file"):
        sg.forkable(broken.Bare(), factory=broken.Bare)


def test_a_forkable_env_is_taken_as_it_is():
    env = RandomWalk()
    assert sg.forkable(env) is env
    assert str(env.choice).startswith("RandomWalk forks by native: it is a ForkableEnv")
    limited = sg.forkable(TimeLimit(RandomWalk(), 4))
    limited.reset(seed=1)
    play(limited, [0, 1])
    snap = limited.snapshot()
    play(limited, [1])
    limited.restore(snap)
    assert [step[3] for step in play(limited, [0, 0])] == [False, True]


def test_an_unknown_wrapper_around_a_forkable_env_goes_into_the_box(made):
    class Doubling(gym.RewardWrapper):
        def reward(self, reward):
            return 2 * reward

    env = made(sg.forkable(Doubling(RandomWalk()), factory=lambda: Doubling(RandomWalk())))
    assert env.choice.mechanism == "process"
    assert "stateless_wrapper(Doubling)" in str(env.choice)
    with pytest.raises(errors.NotForkableError, match="stateless_wrapper"):
        sg.forkable(Doubling(RandomWalk()), "native")


class Counting(gym.Wrapper):
    """A wrapper that nobody declared anything about."""

    count = 0

    def reset(self, **kwargs):
        self.count = 0
        return self.env.reset(**kwargs)

    def step(self, action):
        self.count += 1
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated, truncated, {**info, "count": self.count}


def test_an_unknown_wrapper_is_no_obstacle_to_a_black_box(made):
    env = made(sg.forkable(Counting(Walk()), factory=lambda: Counting(Walk())))
    assert env.choice.mechanism == "process"
    assert forks_exactly(env)


def timed():
    return RecordEpisodeStatistics(TimeLimit(Counting(KeepsAnObject()), 3))


@pytest.mark.parametrize("mechanism", ["process", "copy", "replay"])
def test_a_wrapper_with_a_clock_stays_outside_of_the_box(mechanism, made):
    env = made(sg.forkable(timed(), mechanism, factory=timed))
    env.reset(seed=1)
    play(env, [1])
    (twin,) = sg.fork(env, 1)
    ends = [play(each, [1, 0])[-1] for each in (env, made(twin))]
    for end in ends:
        assert end[3]
        assert end[-1]["episode"].pop("t") >= 0
    assert first_difference(*ends) is None
    snap = env.snapshot()
    env.reset(seed=2)
    env.restore(snap)


def test_running_statistics_stay_outside_of_the_box_and_are_kept(made):
    def make():
        return NormalizeObservation(Counting(KeepsAnObject()))

    env = made(sg.forkable(make(), factory=make))
    assert env.choice.mechanism == "process"
    env.reset(seed=1)
    snap = env.snapshot()
    play(env, [1, 1, 1])
    gathered = env.get_wrapper_attr("obs_rms").count
    env.restore(snap)
    assert env.get_wrapper_attr("obs_rms").count == gathered


def test_a_wrapper_that_needs_a_rule_and_has_none_is_named():
    class Outer(Counting):
        pass

    def make():
        return RecordEpisodeStatistics(Walk())

    def outer():
        return Outer(make())

    with pytest.raises(errors.NotForkableError, match=r"stateless_wrapper\(Outer\)"):
        sg.forkable(outer(), factory=outer)


def test_what_refuses_to_be_captured_is_the_reason(tmp_path):
    filmed = gym.make("CartPole-v1", render_mode="rgb_array")
    env = gym.wrappers.RecordVideo(filmed, str(tmp_path / "films"))
    with pytest.raises(errors.NotForkableError, match="RecordVideo writes films"):
        sg.forkable(env, "native")


def test_a_choice_is_remembered_and_made_anew_for_other_arguments(monkeypatch):
    surveyed = []
    real = choosing.survey
    monkeypatch.setattr(choosing, "survey", lambda make: surveyed.append(1) or real(make))
    for _ in range(2):
        sg.forkable(gym.make("FrozenLake-v1"))
    assert len(surveyed) == 1
    sg.forkable(gym.make("FrozenLake-v1", is_slippery=False))
    sg.forkable(gym.make("FrozenLake-v1", max_episode_steps=7))
    sg.forkable(TransformReward(gym.make("FrozenLake-v1"), lambda reward: 2 * reward), "copy")
    sg.forkable(TransformReward(gym.make("FrozenLake-v1"), lambda reward: 3 * reward), "copy")
    assert len(surveyed) == 5


def test_a_remembered_choice_does_not_hide_what_is_wrong_with_this_instance(made):
    made(sg.forkable(Walk(), factory=Walk))
    odd = Walk()
    odd.extra = broken.Visits()
    env = made(sg.forkable(odd, factory=Walk))
    assert "Walk.extra" in str(env.choice)


def test_choosing_leaves_the_global_generators_alone():
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    sg.forkable(broken.GlobalGenerator(), factory=broken.GlobalGenerator).close()
    assert before == (random.getstate(), np.random.get_state()[1].tolist())


def test_a_factory_that_makes_something_else_is_refused():
    for other in (KeepsAnObject, lambda: TimeLimit(Walk(), 3), lambda: broken.Pickled(3.0)):
        with pytest.raises(errors.NotForkableError, match="makes another environment"):
            sg.forkable(broken.Pickled(4.0), factory=other)


def test_a_vector_environment_is_refused():
    with pytest.raises(errors.NotForkableError, match=r"no gymnasium\.Env"):
        sg.forkable(gym.make_vec("CartPole-v1", num_envs=2))


def test_what_is_forkable_already_keeps_its_account(made):
    env = made(sg.forkable(KeepsAnObject(), factory=KeepsAnObject))
    first = env.choice
    assert sg.forkable(env) is env
    assert env.choice is first


def test_a_forkable_env_without_hooks_is_treated_as_any_other(made):
    class Unfinished(sg.ForkableEnv):
        action_space = gym.spaces.Discrete(2)
        observation_space = gym.spaces.Discrete(99)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.count = 0
            return 0, {}

        def step(self, action):
            self.count += 1
            return self.count, 0.0, False, False, {}

    env = made(sg.forkable(Unfinished(), factory=Unfinished))
    assert env.choice.mechanism == "process"
    assert "native" in str(env.choice)
    assert forks_exactly(env)


class SharesItsSpaces(Walk):
    """Has the spaces of its class, whose generator all instances draw from."""

    action_space = gym.spaces.Discrete(1000)

    def __init__(self):
        super().__init__()
        del self.action_space

    def step(self, action):
        return super().step(action % 3)


@pytest.mark.parametrize("mechanism", ["native", "process", "copy", "replay"])
def test_the_spaces_of_a_class_are_not_shared_by_forks(mechanism, made):
    env = made(sg.forkable(SharesItsSpaces(), mechanism, factory=SharesItsSpaces))
    env.reset(seed=1)
    env.action_space.seed(4)
    left, right = map(made, sg.fork(env, 2))
    drawn = [left.action_space.sample() for _ in range(5)]
    assert [right.action_space.sample() for _ in range(5)] == drawn
    assert [env.action_space.sample() for _ in range(5)] == drawn


def test_nothing_is_filmed_while_a_choice_is_made(tmp_path):
    filmed = gym.make("CartPole-v1", render_mode="rgb_array")
    env = gym.wrappers.RecordVideo(filmed, str(tmp_path / "films"))
    with pytest.raises(errors.NotForkableError, match="RecordVideo writes films"):
        sg.forkable(env)
    assert not list((tmp_path / "films").iterdir())


def test_the_same_is_chosen_every_time():
    accounts = set()
    for _ in range(3):
        choosing._remembered.clear()
        env = sg.forkable(broken.Threaded(), factory=broken.Threaded)
        accounts.add(str(env.choice))
        env.close()
    assert len(accounts) == 1


def test_the_environment_is_closed_where_a_process_takes_its_place(made):
    class Counted(KeepsAnObject):
        closed = 0

        def close(self):
            self.closed += 1

    plain = Counted()
    env = made(sg.forkable(plain, "process", factory=Counted))
    assert isinstance(env, ProcessEnv)
    assert plain.closed == 1


def test_environments_from_other_factories_do_not_take_each_others_snapshots():
    def near():
        return Walk(goal=2.0)

    near_one = sg.forkable(near(), "replay", factory=near)
    far_one = sg.forkable(Walk(goal=9.0), "replay", factory=lambda: Walk(goal=9.0))
    further = sg.forkable(Walk(goal=10.0), "replay", factory=lambda: Walk(goal=10.0))
    near_one.reset(seed=1)
    far_one.reset(seed=1)
    for other, snap in ((far_one, near_one.snapshot()), (further, far_one.snapshot())):
        with pytest.raises(errors.SpecMismatchError, match="factory"):
            other.restore(snap)
    recorded = sg.forkable(broken.Pickled(3.0), "replay")
    recorded.reset(seed=1)
    with pytest.raises(errors.SpecMismatchError):
        sg.forkable(broken.Pickled(4.0), "replay").restore(recorded.snapshot())


def test_what_was_changed_after_it_was_built_goes_by_no_process(made):
    env, plain = KeepsAnObject(), KeepsAnObject()
    env.goal = plain.goal = 80.5
    env = made(sg.forkable(env, factory=KeepsAnObject))
    assert env.choice.mechanism in ("copy", "replay")
    assert "goal is 80.5 here, and 8.0 in a new one" in str(env.choice)
    env.reset(seed=1)
    plain.reset(seed=1)
    for action in (2, 2, 2):
        assert first_difference(list(plain.step(action)), list(env.step(action))) is None


def test_a_factory_that_makes_others_than_before_is_tried_again(made):
    class Walks(Walk):
        wild = False

        def __init__(self, *, wild: bool) -> None:
            super().__init__()
            self.wild = wild

        def draw(self):
            unseen_in_the_code = getattr(np.random, "random")  # noqa: B009
            return float(unseen_in_the_code()) if self.wild else super().draw()

    config = {"wild": False}

    def make():
        return Walks(**config)

    assert made(sg.forkable(make(), factory=make)).choice.mechanism == "native"
    config["wild"] = True
    assert made(sg.forkable(make(), factory=make)).choice.mechanism != "native"
