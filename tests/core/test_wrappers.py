from __future__ import annotations

import functools
import gc
import importlib
import subprocess
import sys
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces, wrappers
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import (
    Autoreset,
    DelayObservation,
    FrameStackObservation,
    NormalizeObservation,
    NormalizeReward,
    RecordEpisodeStatistics,
    TimeLimit,
    TransformAction,
    TransformObservation,
    TransformReward,
)

import sandboxgym as sg
from sandboxgym.core import describe, errors, wrapper_rules
from sandboxgym.core.wrappers import rule_for
from tests.core.worlds import RandomWalk
from tests.core.wrapper_rules.exactness import assert_exact, assert_same, begin, play
from tests.core.wrapper_rules.worlds import Drift

sg.register("tests/Drift-v0", Drift, max_episode_steps=7)


def normalized(front=True):
    env = NormalizeReward(NormalizeObservation(Drift()))
    return sg.Forkable(env) if front else env


def counts(env):
    while not isinstance(env, NormalizeReward):
        env = env.env
    return float(env.return_rms.count), float(env.env.obs_rms.count)


@pytest.mark.parametrize("front", [True, False])
def test_statistics_are_kept_and_what_was_seen_is_returned_all_the_same(front):
    env = normalized(front)
    begin(env, 1)
    moment = play(env, 3)[-1]
    snap = sg.snapshot(env)
    play(env, 5)
    gathered = counts(env)
    for way in (snap, snap.drop_state(), sg.Snapshot.from_bytes(snap.to_bytes())):
        assert_same([list(sg.restore(env, way))], [[moment[0], moment[-1]]])
        assert counts(env) == gathered
        again = sg.snapshot(env)
        assert again.digest == snap.digest
        assert_same([list(again.last.as_dict().values())], [moment])
    stepped = play(env, 1)[-1]
    assert_same([list(sg.snapshot(env).last.as_dict().values())], [stepped])


def test_statistics_are_rewound_on_request_and_taken_by_who_has_none():
    env, fresh = normalized(), normalized()
    begin(env, 1)
    play(env, 3)
    snap, then = env.snapshot(), counts(env)
    future = play(env, 4)
    fresh.restore(snap)
    assert counts(fresh) == then
    assert_same(play(fresh, 4), future)
    fresh.restore(snap)
    assert counts(fresh) != then
    assert sg.restore(fresh, snap, rewind_statistics=True)
    assert_same(play(fresh, 4), future)


def test_a_fork_has_its_parents_statistics():
    env = normalized()
    begin(env, 1)
    play(env, 3)
    (child,) = env.fork(1)
    assert counts(child) == counts(env)
    assert_same(play(child, 4), play(env, 4))


def test_a_fork_has_its_parents_statistics_even_if_its_constructor_gathered_some():
    def build():
        inner = NormalizeObservation(Drift(render_mode="rgb_array"))
        return sg.Forkable(wrappers.AddRenderObservation(inner, render_only=False))

    env = build()
    begin(env, 1)
    play(env, 3)
    (child,) = env.fork(1)
    assert_same(play(child, 3), play(env, 3))


def test_frozen_statistics_stay_frozen_unless_rewound():
    env = normalized(front=False)
    begin(env, 1)
    snap = sg.snapshot(env)
    env.env.update_running_mean = False
    sg.restore(env, snap)
    assert not env.env.update_running_mean
    sg.restore(env, snap, rewind_statistics=True)
    assert env.env.update_running_mean


def test_rewinding_is_verified(monkeypatch):
    rules = wrapper_rules.GYMNASIUM_RULES
    name = "gymnasium.wrappers.stateful_observation:NormalizeObservation"
    broken = wrapper_rules.Statistics(rules[name].statistics.get, lambda w, s: None, lambda w: True)
    monkeypatch.setitem(rules, name, wrapper_rules.WrapperRule(statistics=broken))
    env = normalized()
    begin(env, 1)
    snap = env.snapshot()
    play(env, 3)
    env.restore(snap, verify=True)
    play(env, 3)
    with pytest.raises(errors.RestoreMismatchError, match="'mean'"):
        env.restore(snap, verify=True, rewind_statistics=True)


def test_a_refused_restore_leaves_statistics_and_what_was_seen_as_they_were():
    env = normalized()
    begin(env, 1)
    play(env, 3)
    snap = env.snapshot()
    last = play(env, 2)[-1]
    before = counts(env)
    bad = sg.Snapshot.from_bytes(snap.to_bytes())
    bad.state["where"] = None
    with pytest.raises(errors.SnapshotError):
        env.restore(bad, rewind_statistics=True)
    assert counts(env) == before
    assert_same([list(env.snapshot().last.as_dict().values())], [last])


def test_what_a_function_returned_is_remembered_not_asked_again():
    calls = []

    def counted(obs):
        calls.append(1)
        return obs + len(calls)

    env = sg.Forkable(TransformReward(TransformObservation(Drift(), counted, None), lambda r: r))
    begin(env, 1)
    moment = play(env, 2)[-1]
    snap = env.snapshot()
    play(env, 2)
    made = len(calls)
    assert_same([list(env.restore(snap))], [[moment[0], moment[-1]]])
    assert_same([list(env.snapshot().last.as_dict().values())], [moment])
    assert len(calls) == made


class Echo(gym.Wrapper, RecordConstructorArgs):
    """A wrapper of someone else, with memory and a generator of its own."""

    def __init__(self, env):
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self.heard = np.zeros(3, np.float32)
        self.rng = np.random.default_rng(0)

    def reset(self, **kwargs):
        obs, info = self.env.reset(**kwargs)
        self.heard = obs
        return obs, info

    def step(self, action):
        obs, *rest = self.env.step(action)
        self.heard = 0.5 * self.heard + obs * np.float32(self.rng.random())
        return self.heard, *rest


def test_a_wrapper_of_someone_else_needs_no_view_under_a_forkable():
    def put(wrapper, state):
        wrapper.heard = state["heard"]
        wrapper.rng.bit_generator.state = state["rng"]

    sg.register_wrapper_state(
        Echo, lambda w: {"heard": w.heard, "rng": w.rng.bit_generator.state}, put
    )
    assert_exact(lambda: sg.Forkable(Echo(TimeLimit(Echo(Drift()), 5))))


def test_a_state_that_is_no_data_is_named_with_its_wrapper():
    class Odd(Echo):
        pass

    sg.register_wrapper_state(Odd, lambda w: {"rng": w.rng}, lambda w, state: None)
    env = Odd(Drift())
    begin(env, 1)
    with pytest.raises(errors.StateEncodingError, match=r"state of Odd\['rng'\] is a numpy"):
        sg.snapshot(env)


def test_a_subclass_of_a_known_wrapper_is_unknown():
    class Stricter(TimeLimit):
        pass

    env = Stricter(RandomWalk(), 3)
    env.reset(seed=1)
    with pytest.raises(errors.UnknownWrapperError, match=r"stateless_wrapper\(Stricter\)"):
        sg.snapshot(env)


def test_a_declaration_of_ones_own_comes_first():
    class Mine(TransformReward):
        pass

    sg.stateless_wrapper(Mine)
    assert rule_for(Mine(RandomWalk(), abs)) is rule_for(Mine(RandomWalk(), abs))


def test_the_same_wrapper_twice_keeps_two_states():
    def build():
        env = TimeLimit(FrameStackObservation(TimeLimit(Drift(), 9), 2), 4)
        return sg.Forkable(FrameStackObservation(env, 2))

    for before in range(6):
        assert_exact(build, before=before)


@pytest.mark.parametrize("below", [True, False])
def test_an_episode_is_truncated_at_the_same_step_after_every_restore(below):
    def build():
        env = TimeLimit(Drift(), 5) if below else Drift()
        env = wrappers.RepeatAction(env, 2) if hasattr(wrappers, "RepeatAction") else env
        return sg.Forkable(env if below else TimeLimit(env, 3))

    for before in range(5):
        assert_exact(build, before=before)


@pytest.mark.parametrize("before", range(9))
def test_an_autoreset_goes_on_at_and_around_the_boundary(before):
    def build():
        env = RecordEpisodeStatistics(Autoreset(TimeLimit(Drift(), 3)))
        return sg.Forkable(FrameStackObservation(env, 2))

    assert_exact(build, before=before, after=5)


def test_an_autoreset_above_or_below_a_front_steps_on_after_the_end():
    inside = sg.Forkable(Autoreset(TimeLimit(Drift(), 2)))
    outside = Autoreset(sg.Forkable(TimeLimit(Drift(), 2)))
    results = []
    for env in (inside, outside):
        env.reset(seed=1)
        results.append([env.step(1) for _ in range(7)])
    assert_same([list(r) for r in results[0]], [list(r) for r in results[1]])
    with pytest.raises(errors.EpisodeEndedError):
        outside.env.step(1) if outside.autoreset else [outside.step(1), outside.env.step(1)]


def test_a_failing_reset_leaves_all_wrappers_as_they_were():
    env = sg.Forkable(
        RecordEpisodeStatistics(FrameStackObservation(NormalizeObservation(RandomWalk()), 2))
    )
    env.reset(seed=1)
    env.step(1)
    digest, statistics = env.state_digest(), float(env.env.env.env.obs_rms.count)
    with pytest.raises(errors.InvalidOptionsError):
        env.reset(seed=2, options={"bad": True})
    assert env.state_digest() == digest
    assert float(env.env.env.env.obs_rms.count) == statistics


def test_a_front_around_what_it_has_not_seen_begins_with_a_reset():
    inner = DelayObservation(Drift(), 2)
    inner.reset(seed=1)
    env = sg.Forkable(inner)
    with pytest.raises(errors.NotResetError):
        env.step(1)
    with pytest.raises(errors.NotResetError):
        env.snapshot()


def test_frames_collected_by_gymnasiums_make_lie_outside_of_the_front_and_are_captured():
    def build():
        return gym.make("tests/Drift-v0", render_mode="rgb_array_list")

    env = build()
    assert isinstance(env, wrappers.RenderCollection)
    assert isinstance(env.env, sg.Forkable)
    assert_exact(build)
    env.reset(seed=1)
    env.step(1)
    snap = sg.snapshot(env)
    frames = env.render()
    sg.restore(env, snap)
    np.testing.assert_array_equal(env.render(), frames)


def test_a_front_inside_is_refused_while_a_wrapper_around_it_is_known():
    front = gym.make("tests/Drift-v0")
    outer = TimeLimit(front, 5)
    outer.reset(seed=1)
    inner_snap = front.snapshot()  # nobody can know of the outer wrapper yet
    with pytest.raises(errors.WrapperMismatchError, match="TimeLimit > Forkable"):
        sg.restore(outer, inner_snap)
    snap = sg.snapshot(outer)
    for call in (front.snapshot, lambda: front.restore(inner_snap), lambda: front.fork(1)):
        with pytest.raises(errors.WrapperMismatchError, match="use the outermost wrapper, <TimeLi"):
            call()
    sg.restore(outer, snap)
    del outer
    gc.collect()
    front.restore(inner_snap)


def test_what_a_front_inside_has_seen_travels_with_the_snapshot():
    def build():
        front = sg.Forkable(DelayObservation(TimeLimit(Drift(), 6), 1))
        return TimeLimit(FrameStackObservation(front, 2), 5)

    for before in range(4):
        assert_exact(build, before=before)
    env = build()
    begin(env, 1)
    play(env, 3)
    (shown,) = [w.shown for w in sg.snapshot(env).wrappers if w.shown is not None]
    assert shown.obs.shape == (3,)


def test_forks_share_no_space_that_was_given_as_an_argument():
    env = TransformAction(Drift(), abs, spaces.Discrete(3))
    env.reset(seed=1)
    left, right = sg.fork(env, 2)
    left.action_space.seed(1)
    assert left.action_space is not right.action_space
    state = right.action_space.np_random.bit_generator.state
    left.action_space.sample()
    assert right.action_space.np_random.bit_generator.state == state


class Unrecorded(gym.Wrapper, RecordConstructorArgs):
    """Forgets one of its arguments."""

    def __init__(self, env, by=1, **others):
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)


class Misrecorded(gym.Wrapper, RecordConstructorArgs):
    """Records an argument that it does not take."""

    def __init__(self, env):
        RecordConstructorArgs.__init__(self, by=1)
        gym.Wrapper.__init__(self, env)


def test_wrappers_that_recorded_other_arguments_than_they_take_are_refused_by_fork():
    for cls, match in (
        (Unrecorded, "does not record its argument 'by'"),
        (Misrecorded, r"cannot be built again.*by"),
    ):
        sg.stateless_wrapper(cls)
        env = cls(Drift())
        env.reset(seed=1)
        with pytest.raises(errors.ReproductionError, match=match):
            sg.fork(env, 1)


def same_function(left, right):
    prints = [describe.fingerprints({"f": f}) for f in (left, right)]
    names = [describe.described(f) for f in (left, right)]
    return names[0] == names[1] and describe.differing_function(*prints) is None


def scaled(by):
    return lambda value: value * by


def test_functions_are_told_apart_by_name_code_and_what_they_close_over():
    assert same_function(scaled(2), scaled(2))
    assert not same_function(scaled(2), scaled(3))
    assert not same_function(lambda value: value, lambda value: -value)
    assert not same_function(lambda value: value + 1, lambda value: value + 2)
    assert not same_function(lambda value, by=1: value, lambda value, by=2: value)
    assert not same_function(abs, str)
    assert not same_function(functools.partial(scaled, 2), functools.partial(scaled, 3))
    assert not same_function(functools.partial(scaled(2)), functools.partial(scaled(3)))
    assert same_function(lambda v: [lambda: v, {"a", "b"}], lambda v: [lambda: v, {"a", "b"}])


def test_a_function_that_closes_over_itself_has_a_fingerprint():
    def outer():
        def inner(depth):
            return inner(depth - 1) if depth else 0

        return inner

    assert same_function(outer(), outer())


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (spaces.Discrete(3), spaces.Discrete(4)),
        (spaces.Discrete(3), spaces.Discrete(3, start=1)),
        (spaces.Box(0, 1, (40, 40)), spaces.Box(0, 2, (40, 40))),
        (spaces.Box(0, 1, (2,)), spaces.Box(0, 1, (3,))),
        (spaces.Box(0, 1, (2,)), spaces.Box(np.float32([0, 0.5]), np.float32([1, 1]))),
        (spaces.Box(0, 1, (2,), np.float32), spaces.Box(0, 1, (2,), np.float64)),
        (spaces.Dict(a=spaces.Discrete(2)), spaces.Dict(b=spaces.Discrete(2))),
        (spaces.Text(3, charset="ab"), spaces.Text(3, charset="ac")),
        (np.dtype("int8"), np.dtype("int16")),
        (np, gym),
        ({1, 2}, {1, 3}),
        ([spaces.Discrete(2)], [spaces.Discrete(3)]),
        ({("a", 1): 1}, {("a", 2): 1}),
    ],
)
def test_arguments_that_are_no_data_are_told_apart(left, right):
    import copy

    assert describe.described(left) != describe.described(right)
    twin = left if left is np else copy.deepcopy(left)
    if hasattr(twin, "seed"):
        twin.seed(5)
    assert describe.described(left) == describe.described(twin)


def test_an_address_is_no_description():
    class Thing:
        pass

    assert describe.described(Thing()) == describe.described(Thing())


def test_descriptions_are_the_same_in_every_process():
    code = (
        "from gymnasium import spaces; from sandboxgym.core import describe;"
        "f = lambda v: v in {'north', 'south', 'east'};"
        "s = spaces.Text(5, charset='snow');"
        "print(describe.described([s, {'x', 'y', 'z'}, f]), describe.fingerprints({'f': f}))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1


def test_a_snapshot_through_another_function_of_the_same_name_is_refused():
    def build(by):
        env = TransformReward(RandomWalk(), scaled(by))
        env.reset(seed=1)
        return env

    snap = sg.snapshot(build(2))
    sg.restore(build(2), snap)
    with pytest.raises(errors.WrapperMismatchError, match="another function as 'func'"):
        sg.restore(build(3), sg.Snapshot.from_bytes(snap.to_bytes()))


def test_a_function_that_counts_its_calls_is_told_from_what_it_was():
    count = 0

    def counting(reward):
        nonlocal count
        count += 1
        return reward + count

    env = sg.Forkable(TransformReward(RandomWalk(), counting))
    env.reset(seed=1)
    snap = env.snapshot()
    env.restore(snap)
    env.step(1)
    with pytest.raises(errors.WrapperMismatchError, match="keeps something from one call to the"):
        env.restore(snap)


def test_a_snapshot_through_another_space_is_refused():
    def build(n):
        env = TransformAction(RandomWalk(), abs, spaces.Discrete(n))
        env.reset(seed=1)
        return env

    with pytest.raises(errors.WrapperMismatchError, match=r"\['action_space'\]\['n'\]"):
        sg.restore(build(2), sg.snapshot(build(3)))


def test_importing_and_capturing_imports_no_framework():
    code = (
        "import sys, sandboxgym as sg, gymnasium as gym;"
        "from gymnasium.wrappers import FrameStackObservation, NormalizeReward;"
        "from tests.core.worlds import RandomWalk;"
        "env = sg.Forkable(NormalizeReward(FrameStackObservation(RandomWalk(), 2)));"
        "env.reset(seed=1); env.step(1); env.restore(env.snapshot());"
        "heavy = {'torch', 'jax', 'cv2', 'pygame', 'array_api_compat', 'moviepy'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="."
    )
    assert done.stdout.strip() == "[]"


def test_a_framework_that_is_not_installed_is_named(monkeypatch):
    torch = pytest.importorskip("torch")
    env = sg.Forkable(TransformObservation(Drift(), torch.as_tensor, None))
    begin(env, 1)
    snap = env.snapshot()
    real = importlib.import_module

    def absent(name, *args):
        if name == "torch":
            raise ImportError("no torch here")
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", absent)
    play(env, 2)
    steps = env.base.taken
    with pytest.raises(errors.MissingDependencyError, match=r"torch on cpu.*no torch here"):
        env.restore(snap)
    assert env.base.taken == steps


def test_a_device_that_is_not_there_is_named_and_nothing_is_restored():
    torch = pytest.importorskip("torch")
    env = sg.Forkable(TransformObservation(Drift(), torch.as_tensor, None))
    begin(env, 1)
    snap = env.snapshot()
    play(env, 2)
    elsewhere = replace(snap.last.obs, device="cuda:77")
    moved = replace(snap, last=replace(snap.last, obs=elsewhere))
    with pytest.raises(errors.MissingDependencyError, match="on cuda:77, which cannot be had here"):
        env.restore(moved)
    assert env.base.taken == 2
