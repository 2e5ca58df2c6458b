from __future__ import annotations

import copy
import gc
import pickle
import weakref

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from hypothesis import given, settings
from hypothesis import strategies as st

import sandboxgym as sg
from sandboxgym.core import errors
from sandboxgym.core.digest import first_difference
from tests.core.worlds import Forgetful, Fragile, RandomWalk

sg.register("tests/RandomWalk-v0", RandomWalk, max_episode_steps=20)


@pytest.fixture
def env():
    made = gym.make("tests/RandomWalk-v0")
    made.reset(seed=1)
    return made


def play(env, actions):
    return [list(env.step(a)) for a in actions]


def same(left, right):
    return first_difference(left, right) is None


def test_the_outermost_wrapper_of_a_registered_environment_has_the_contracts_methods(env):
    assert isinstance(env, sg.Forkable)
    snap = env.snapshot()
    assert env.state_digest() == snap.digest
    assert env.fidelity.mechanism == "native"


def test_restore_returns_the_pair_of_that_moment_and_the_same_future(env):
    obs, _, _, _, info = play(env, [1, 2])[-1]
    snap = env.snapshot()
    first = play(env, [0, 1, 2])
    assert same(list(env.restore(snap)), [obs, info])
    assert same(play(env, [0, 1, 2]), first)


def test_the_time_limit_is_restored_with_the_environment(env):
    play(env, [1] * 15)
    snap = env.snapshot()
    env.reset(seed=3)
    env.restore(snap)
    truncated = [t for _, _, _, t, _ in play(env, [1] * 5)]
    assert truncated == [False] * 4 + [True]


def test_capturing_or_restoring_below_the_wrappers_is_refused(env):
    snap = env.snapshot()
    with pytest.raises(errors.WrapperMismatchError, match="outermost wrapper, <Forkable<TimeLimit"):
        env.unwrapped.restore(snap)
    with pytest.raises(errors.WrapperMismatchError, match="outermost wrapper"):
        env.unwrapped.snapshot()


def test_a_snapshot_of_another_stack_is_refused(env):
    bare = RandomWalk()
    bare.reset(seed=1)
    for snap in (sg.snapshot(bare), sg.snapshot(_limited(bare, 20)), sg.snapshot(env)):
        for target in (bare, _limited(RandomWalk(), 30), gym.make("tests/RandomWalk-v0")):
            if [w.name for w in snap.wrappers] != _names(target):
                with pytest.raises((errors.WrapperMismatchError, errors.SpecMismatchError)):
                    sg.restore(target, snap)


def _limited(env, steps):
    limited = TimeLimit(env, steps)
    limited.reset(seed=1)
    return limited


def _names(env):
    names = []
    while isinstance(env, gym.Wrapper):
        names.append(f"{type(env).__module__}:{type(env).__qualname__}")
        env = env.env
    return names


def test_the_same_wrapper_with_other_arguments_is_refused():
    snap = sg.snapshot(_limited(RandomWalk(), 20))
    with pytest.raises(errors.WrapperMismatchError, match=r"max_episode_steps.*20 there and 30"):
        sg.restore(_limited(RandomWalk(), 30), snap)


def test_statistics_are_restored_and_the_final_info_is_returned_again():
    env = RecordEpisodeStatistics(TimeLimit(RandomWalk(), 4))
    env.reset(seed=1)
    play(env, [1, 2])
    middle = sg.snapshot(env)
    final_info = play(env, [1, 1])[-1][-1]
    end = sg.snapshot(env)
    assert end.last.truncated
    assert sg.restore(env, middle)[1] == middle.last.info
    again = play(env, [1, 1])[-1][-1]
    assert again["episode"]["r"] == final_info["episode"]["r"]
    assert again["episode"]["l"] == 4
    assert env.episode_count == end.wrappers[0].state["episode_count"]
    assert sg.restore(env, end)[1] == final_info


def test_clock_time_is_not_part_of_the_digest():
    env = RecordEpisodeStatistics(RandomWalk())
    env.reset(seed=1)
    one, two = sg.snapshot(env), sg.snapshot(env)
    assert one.wrappers[0].clock != two.wrappers[0].clock
    assert one.digest == two.digest


def test_an_unknown_wrapper_is_refused_with_the_line_that_declares_it():
    class Strange(gym.Wrapper, gym.utils.RecordConstructorArgs):
        pass

    env = Strange(RandomWalk())
    env.reset(seed=1)
    with pytest.raises(errors.UnknownWrapperError, match=r"stateless_wrapper\(Strange\)"):
        sg.snapshot(env)


def test_a_declared_wrapper_is_captured():
    class Counting(gym.Wrapper, gym.utils.RecordConstructorArgs):
        def __init__(self, env):
            gym.utils.RecordConstructorArgs.__init__(self)
            super().__init__(env)
            self.count = 0

        def step(self, action):
            self.count += 1
            obs, reward, terminated, truncated, info = self.env.step(action)
            return obs, reward, terminated, truncated, {**info, "count": self.count}

    sg.register_wrapper_state(
        Counting,
        lambda w: {"count": w.count},
        lambda w, state: setattr(w, "count", state["count"]),
        view=lambda w, last: (
            sg.Transition(
                last.obs,
                last.reward,
                last.terminated,
                last.truncated,
                {**last.info, "count": w.count},
            )
            if w.count
            else last
        ),
    )
    env = Counting(RandomWalk())
    env.reset(seed=1)
    info = play(env, [1, 1])[-1][-1]
    snap = sg.snapshot(env)
    play(env, [1])
    assert sg.restore(env, snap)[1] == info
    assert play(env, [1])[-1][-1]["count"] == 3


def test_forks_are_exact_twins_and_independent(env):
    play(env, [1, 2])
    left, right = sg.fork(env, 2)
    assert left.state_digest() == right.state_digest() == env.state_digest()
    expected = play(left, [0, 0, 1])
    left.close()
    assert same(play(env, [0, 0, 1]), expected)
    assert same(play(right, [0, 0, 1]), expected)


def test_a_fork_that_is_let_go_is_freed_at_once(env):
    (twin,) = sg.fork(env, 1)
    gone = weakref.ref(twin.unwrapped)
    gc.disable()
    try:
        del twin
        assert gone() is None
    finally:
        gc.enable()


def test_forks_with_seeds_differ(env):
    left, right, again = sg.fork(env, 3, seeds=[1, 2, 1])
    one, two, three = (play(e, [1, 1]) for e in (left, right, again))
    assert not same(one, two)
    assert same(one, three)


@pytest.mark.parametrize(("n", "seeds"), [(-1, None), (2, [1])])
def test_fork_refuses_counts_that_do_not_fit(env, n, seeds):
    with pytest.raises(ValueError, match="one seed a fork"):
        sg.fork(env, n, seeds=seeds)


def test_a_wrapper_that_cannot_be_built_again_is_refused_by_fork():
    class Plain(gym.Wrapper):
        pass

    sg.stateless_wrapper(Plain)
    env = Plain(RandomWalk())
    env.reset(seed=1)
    with pytest.raises(errors.ReproductionError, match="RecordConstructorArgs"):
        sg.fork(env, 1)


def test_restore_with_a_seed_starts_new_randomness_and_its_replay_knows(env):
    play(env, [1])
    snap = env.snapshot()
    original = play(env, [1, 1])
    env.restore(snap, seed=5)
    reseeded = play(env, [1, 1])
    assert not same(original, reseeded)
    later = env.snapshot()
    future = play(env, [2])
    fresh = gym.make("tests/RandomWalk-v0")
    fresh.restore(later.drop_state())
    assert same(play(fresh, [2]), future)


def test_a_recipe_alone_restores_a_fresh_instance(env):
    play(env, [1, 0, 2])
    snap = env.snapshot().drop_state()
    future = play(env, [1])
    fresh = gym.make("tests/RandomWalk-v0")
    obs, _info = fresh.restore(snap)
    assert same(obs, snap.last.obs)
    assert fresh.metrics["replayed_steps"] == 3
    assert same(play(fresh, [1]), future)


def test_an_unseeded_episode_is_replayed_from_its_generators_state(env):
    env.reset()
    play(env, [1, 1])
    snap = env.snapshot().drop_state()
    future = play(env, [1])
    fresh = gym.make("tests/RandomWalk-v0")
    fresh.restore(snap)
    assert same(play(fresh, [1]), future)


def test_space_generators_are_part_of_the_state(env):
    env.action_space.seed(3)
    snap = env.snapshot()
    draws = [env.action_space.sample() for _ in range(8)]
    env.restore(snap)
    assert [env.action_space.sample() for _ in range(8)] == draws


def test_a_replay_that_ends_elsewhere_is_refused_and_undone():
    env = Forgetful()
    env.reset(seed=1)
    play(env, [1])
    snap = env.snapshot().drop_state()
    fresh = Forgetful()
    fresh.reset(seed=9)
    before = fresh.position
    with pytest.raises(errors.RestoreMismatchError, match="digest"):
        fresh.restore(snap)
    assert fresh.position == before


def test_a_failing_set_state_leaves_the_environment_as_it_was():
    env = Fragile()
    env.reset(seed=1)
    play(env, [2, 2])
    poisoned = env.snapshot()
    env.reset(seed=2)
    play(env, [1])
    digest = env.state_digest()
    with pytest.raises(errors.RestoreFailedError, match=r"disk on fire.*as it was before"):
        env.restore(poisoned)
    assert env.state_digest() == digest


def test_where_putting_back_fails_too_the_environment_is_closed_and_says_so():
    closed = []

    class Doomed(Fragile):
        def close(self):
            closed.append(True)

    env = Doomed()
    env.reset(seed=1)
    snap = env.snapshot()
    env.broken = True
    with pytest.raises(errors.RestoreFailedError, match="it was closed"):
        env.restore(snap)
    assert closed == [True]
    with pytest.raises(errors.NotResetError):
        env.step(1)


def test_an_interrupt_stays_one_where_putting_back_fails_too():
    calls, closed = [], []

    class Interrupted(Fragile):
        def set_state(self, state):
            calls.append(state)
            raise KeyboardInterrupt if len(calls) == 1 else OSError("disk on fire")

        def close(self):
            closed.append(True)

    env = Interrupted()
    env.reset(seed=1)
    snap = env.snapshot()
    with pytest.raises(KeyboardInterrupt):
        env.restore(snap)
    assert (len(calls), closed) == (2, [True])
    with pytest.raises(errors.NotResetError):
        env.step(1)


def test_a_fresh_instance_that_could_not_be_restored_still_wants_a_reset():
    env = Fragile()
    env.reset(seed=1)
    play(env, [2, 2])
    snap = env.snapshot()
    fresh = Fragile()
    with pytest.raises(errors.RestoreFailedError):
        fresh.restore(snap)
    with pytest.raises(errors.NotResetError):
        fresh.snapshot()


def test_a_failing_reset_leaves_the_episode_as_it_was(env):
    play(env, [1, 1])
    digest = env.state_digest()
    with pytest.raises(ValueError, match="no such option"):
        env.reset(seed=5, options={"bad": True})
    assert env.state_digest() == digest


def test_before_reset_nothing_goes():
    env = gym.make("tests/RandomWalk-v0")
    for call in (env.snapshot, env.state_digest, lambda: env.step(1), lambda: sg.fork(env, 1)):
        with pytest.raises(errors.NotResetError, match="reset"):
            call()


def test_after_the_end_stepping_is_refused_also_in_a_restored_episode(env):
    play(env, [1] * 20)
    end = env.snapshot()
    fresh = gym.make("tests/RandomWalk-v0")
    fresh.restore(end)
    for ended in (env, fresh):
        with pytest.raises(errors.EpisodeEndedError, match="ended"):
            ended.step(1)
    bare = RandomWalk(goal=-100.0)
    bare.reset(seed=1)
    bare.step(0)
    with pytest.raises(errors.EpisodeEndedError):
        bare.step(0)


def test_a_snapshot_of_another_environment_or_other_arguments_is_refused(env):
    other = gym.make("tests/RandomWalk-v0", goal=3.0)
    with pytest.raises(errors.SpecMismatchError, match="'goal'"):
        other.restore(env.snapshot())
    bare = sg.fork(env, 1)[0].unwrapped
    stranger = Fragile()
    with pytest.raises(errors.SpecMismatchError, match="Fragile"):
        stranger.restore(bare.snapshot())


def test_the_render_mode_is_no_part_of_the_identity(env):
    class Drawn(RandomWalk):
        metadata = {"render_modes": ["ansi"]}

    plain, drawn = Drawn(), Drawn(render_mode="ansi")
    plain.reset(seed=1)
    drawn.restore(plain.snapshot())


def test_a_state_of_another_version_is_refused_and_its_recipe_is_not():
    class Versioned(RandomWalk):
        pass

    env = Versioned()
    env.reset(seed=1)
    play(env, [1])
    snap = env.snapshot()
    old = sg.Snapshot.from_bytes(snap.to_bytes())
    old.versions["Versioned state"] = "0"
    if old.versions == snap.versions:
        key = next(k for k in old.versions if k.endswith("state"))
        old.versions[key] = "0"
    with pytest.raises(errors.SnapshotVersionError, match="drop_state"):
        env.restore(old)
    env.restore(old.drop_state())


def test_a_returned_observation_is_not_the_snapshots(env):
    snap = env.snapshot()
    obs, info = env.restore(snap)
    obs[:] = 99
    info["visits"].append("changed")
    again, info_again = env.restore(snap)
    assert again[0] != 99
    assert info_again == {"visits": []}


def test_stepping_on_changes_no_snapshot(env):
    play(env, [1])
    snap = env.snapshot()
    twin = env.snapshot()
    play(env, [2, 2])
    assert snap.diff(twin) == []
    assert snap.state["visits"] == [1]
    env.restore(snap)
    play(env, [2])
    assert snap.state["visits"] == [1]


def test_the_parent_of_a_snapshot_is_what_was_restored_last(env):
    root = env.snapshot()
    assert root.parent is None
    play(env, [1])
    assert env.snapshot().parent is None
    env.restore(root)
    play(env, [1])
    assert env.snapshot().parent == root.digest


def test_an_environment_without_hooks_is_refused_with_the_way_out():
    env = gym.make("CartPole-v1")
    env.reset(seed=1)
    with pytest.raises(errors.NotForkableError, match=r"sandboxgym\.forkable"):
        sg.snapshot(env)


def test_an_info_that_is_not_plain_data_is_refused_with_its_path():
    class Chatty(RandomWalk):
        def _info(self):
            return {"a": [1, {"b": object()}]}

    with pytest.raises(errors.StateEncodingError, match=r"info\['a'\]\[1\]\['b'\]"):
        Chatty().reset(seed=1)


def test_after_an_exception_half_way_through_a_step_nobody_trusts_the_state(env):
    play(env, [1])
    snap = env.snapshot()
    with pytest.raises(OSError, match="disk on fire"):
        env.step(99)
    for call in (env.snapshot, lambda: env.step(1)):
        with pytest.raises(errors.NotResetError):
            call()
    env.restore(snap)
    play(env, [1])


def test_methods_of_a_mixin_are_recorded():
    class Both:
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed, options=options)

        def step(self, action):
            return super().step(action)

    class Mixed(Both, RandomWalk):
        pass

    env = Mixed()
    env.reset(seed=1)
    obs = env.step(1)[0]
    snap = env.snapshot()
    assert snap.recipe.actions == (1,)
    assert same(env.restore(snap)[0], obs)


def test_spaces_of_the_class_are_not_shared_by_its_instances():
    env = RandomWalk()
    env.reset(seed=1)
    env.action_space.seed(0)
    left, right = sg.fork(env, 2)
    digest = right.state_digest()
    left.action_space.sample()
    assert right.state_digest() == digest


@pytest.mark.parametrize("copy_it", [copy.deepcopy, copy.copy, pickle.dumps])
def test_copies_that_would_miss_something_are_refused(env, copy_it):
    with pytest.raises(errors.ReproductionError, match=r"sandboxgym\.fork"):
        copy_it(env.unwrapped)
    if copy_it is not copy.copy:
        with pytest.raises(errors.ReproductionError, match=r"sandboxgym\.fork"):
            copy_it(env)


def test_restore_says_what_it_takes(env):
    with pytest.raises(TypeError, match=r"Snapshot\.from_bytes"):
        env.restore(env.snapshot().to_bytes())


def test_seeds_may_be_numpys(env):
    assert len(sg.fork(env, 2, seeds=np.arange(2))) == 2


def test_statistics_without_a_buffer_are_refused_at_the_end():
    env = RecordEpisodeStatistics(TimeLimit(RandomWalk(), 1), buffer_length=0)
    env.reset(seed=1)
    env.step(1)
    with pytest.raises(errors.UncapturedStateError, match="at least 1"):
        sg.snapshot(env)


def test_a_state_of_none_is_refused_because_it_would_look_dropped():
    class Empty(RandomWalk):
        def get_state(self):
            return None

    env = Empty()
    env.reset(seed=1)
    with pytest.raises(errors.StateEncodingError, match=r"return \{\}"):
        env.snapshot()


def test_an_inherited_step_is_recorded_once():
    class Outer(RandomWalk):
        def step(self, action):
            return super().step(action)

        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed, options=options)

    env = Outer()
    env.reset(seed=1)
    env.step(1)
    assert env.snapshot().step == 1


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31 - 1),
    before=st.lists(st.integers(0, 2), max_size=8),
    between=st.lists(st.integers(0, 2), max_size=8),
    after=st.lists(st.integers(0, 2), min_size=1, max_size=4),
    through_bytes=st.booleans(),
    by_recipe=st.booleans(),
)
def test_restoring_commutes_with_everything(seed, before, between, after, through_bytes, by_recipe):
    env = gym.make("tests/RandomWalk-v0")
    env.reset(seed=seed)
    play(env, before)
    snap = env.snapshot()
    expected = play(env, after)
    env.reset()
    play(env, between)
    if by_recipe:
        snap = snap.drop_state()
    if through_bytes:
        snap = sg.Snapshot.from_bytes(snap.to_bytes())
    env.restore(snap)
    assert env.state_digest() == snap.digest
    assert same(play(env, after), expected)
    assert np.isfinite(expected[-1][1])
