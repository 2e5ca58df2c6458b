"""A pool does what its environments would do alone, and forks go on from where they were."""

from __future__ import annotations

import random
import sys
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import sandboxgym as sg
from sandboxgym.core.errors import (
    EnvironmentRaisedError,
    InvalidActionError,
    LaneBusyError,
    MissingDependencyError,
    NoFreeLaneError,
    NotResetError,
    PoolClosedError,
    SpecMismatchError,
    StateEncodingError,
    UnknownWrapperError,
)
from sandboxgym.pool import Call, Reset, Restore, SetAttribute, Step, Take
from tests.pool.toys import Walk, limited_walk, not_forkable, plain, walk


@pytest.fixture(scope="module")
def shared():
    with sg.ForkPool(limited_walk, 6, workers=2) as pool:
        yield pool


@pytest.fixture
def pool(shared):
    shared.release(*shared.lanes)
    shared.take_restarts()
    return shared


def test_episodes_are_those_of_the_environments_alone(pool):
    actions = random.Random(0)
    alone = [limited_walk() for _ in pool.lanes]
    for lane in pool.lanes:
        assert plain(pool.reset(lane, seed=lane, options={"start": 2})) == plain(
            alone[lane].reset(seed=lane, options={"start": 2})
        )
    for _ in range(8):
        chosen = {lane: actions.randrange(2) for lane in pool.lanes}
        results = pool.step(chosen)
        expected = {lane: alone[lane].step(action) for lane, action in chosen.items()}
        assert plain(results) == plain(expected)
    assert all(truncated for _, _, _, truncated, _ in results.values())


def test_an_unseeded_reset_goes_on_with_the_generator(pool):
    alone = limited_walk()
    pool.reset(0, seed=3)
    alone.reset(seed=3)
    for _ in range(3):
        assert plain(pool.reset(0)) == plain(alone.reset())


def test_branches_are_twins_and_independent(pool):
    pool.reset(0, seed=1)
    pool.step({0: 1})
    forks = pool.branch(0, 5)
    assert sorted([0, *forks]) == list(pool.lanes)
    results = pool.step(dict.fromkeys(pool.lanes, 1))
    assert all(plain(result) == plain(results[0]) for result in results.values())
    assert plain(pool.last(forks[-1])) == plain(results[0])
    apart = pool.step({lane: lane % 2 for lane in pool.lanes})
    assert apart[0][0][0] + 1 == apart[forks[0]][0][0]


def test_branches_with_seeds_go_their_own_ways_reproducibly(pool):
    pool.reset(0, seed=1)
    moment = pool.snapshot(0)
    forks = pool.branch(0, 4, seeds=[5, 6, 7, 5])
    ways = {lane: [pool.step({lane: 0})[lane][0][0] for _ in range(6)] for lane in forks}
    assert ways[forks[0]] == ways[forks[3]]
    assert len({tuple(way) for way in ways.values()}) == 3
    pool.restore(5, moment, seed=6)
    assert [pool.step({5: 0})[5][0][0] for _ in range(6)] == ways[forks[1]]


def test_a_snapshot_goes_to_any_lane_any_number_of_times(pool):
    first = pool.reset(0, seed=9)
    start = pool.snapshot(0)
    pool.step({0: 1})
    later = pool.snapshot(0)
    assert (start.step, later.step) == (0, 1)
    ends = []
    for lane in (5, 0, 5, 3):
        assert plain(pool.restore(lane, start)) == plain(first)
        ends.append(plain(pool.step({lane: 1})))
    assert all(list(end.values()) == list(ends[0].values()) for end in ends)


def test_a_snapshot_travels_only_where_it_is_not(pool):
    pool.reset(0, seed=9)
    moment = pool.snapshot(0)
    pool.restore(1, moment)
    assert moment.blob is None
    pool.restore(4, moment)
    assert moment.blob is not None


def test_fetching_gives_a_snapshot_for_everywhere(pool):
    pool.reset(0, seed=9)
    pool.step({0: 1})
    snapshot = sg.Snapshot.from_bytes(pool.fetch(pool.snapshot(0)).to_bytes())
    env = limited_walk()
    obs, _ = sg.restore(env, snapshot)
    assert obs.tolist() == pool.last(0)[0].tolist()
    assert plain(env.step(1)) == plain(pool.step({0: 1})[0])


def test_snapshots_from_outside_are_restored(pool):
    env = limited_walk()
    env.reset(seed=4)
    env.step(1)
    snapshot = sg.snapshot(env)
    pool.do({lane: Restore(snapshot) for lane in (0, 3)})
    expected = plain(env.step(1))
    assert [plain(result) for result in pool.step({0: 1, 3: 1}).values()] == [expected, expected]
    handle = pool.put(snapshot)
    assert plain(pool.restore(5, handle)[0]) == plain(snapshot.last.obs)
    assert handle.step == 1


def test_many_kinds_of_things_at_once(pool):
    pool.reset(0, seed=0)
    pool.reset(1, seed=0)
    moment = pool.snapshot(1)
    results = pool.do({0: Step(1), 1: Take(), 2: Restore(moment), 3: Reset(5), 4: Reset(6)})
    assert len(results[0]) == 5
    assert results[1].step == 0
    assert results[2][1]["word"] == results[3][1]["word"] == "hello"
    assert results[3][1] != results[4][1]


def test_results_come_as_lanes_are_done(pool):
    for lane in pool.lanes:
        pool.reset(lane, seed=lane)
    pool.send({lane: Step(0) for lane in (0, 5)})
    with pytest.raises(LaneBusyError, match="lane 5"):
        pool.step({5: 0})
    pool.send({1: Step(0)})
    seen = {}
    while len(seen) < 3:
        seen |= pool.receive()
    assert sorted(seen) == [0, 1, 5]
    assert pool.receive(timeout=0) == {}
    with pytest.raises(LaneBusyError, match="lane 0 is at nothing"):
        pool.wait([0])


def test_errors_come_typed_and_with_the_lane(pool):
    for lane in (0, 3):
        pool.reset(lane, seed=1)
    with pytest.raises(InvalidActionError, match="lane 3: no such word here") as refused:
        pool.step({3: "refuse"})
    assert refused.value.lane == 3
    assert "toys.py" in str(refused.value.__cause__)
    pool.step({3: 0})  # a refusal leaves the lane as it was
    with pytest.raises(ZeroDivisionError, match="lane 3: by nothing"):
        pool.step({0: 1, 3: "raise"})
    assert pool.last(0)[0][1] == 1  # the other lane has taken its step
    with pytest.raises(NotResetError, match="lane 3"):
        pool.step({3: 0})
    results = pool.step({0: 1, 3: 1}, on_error="return")
    assert isinstance(results[3], NotResetError)
    assert results[0][0][1] == 2
    pool.reset(3, seed=1)
    pool.step({3: 0})


def test_an_action_that_is_no_data_is_refused_before_anything_begins(pool):
    for lane in (0, 1):
        pool.reset(lane, seed=1)
    with pytest.raises(StateEncodingError, match="lane 1"):
        pool.step({0: 1, 1: object()})
    assert pool.last(0)[0][1] == 0
    pool.step({0: 1, 1: 1})


def test_where_no_lane_is_free(pool):
    pool.reset(0, seed=1)
    pool.branch(0, 3)
    with pytest.raises(NoFreeLaneError, match="3 lanes are needed and 2 of 6 are free"):
        pool.branch(0, 3)
    assert len(pool.free) == 2
    pool.release(1)
    assert len(pool.branch(0, 3)) == 3
    assert pool.free == []
    with pytest.raises(ValueError, match="seeds"):
        pool.branch(0, 2, seeds=[1])


def test_lanes_are_taken_where_most_are_free(pool):
    assert {pool.take(), pool.take()} == {0, 3}
    near = pool.take()
    pool.reset(near, seed=0)
    moment = pool.snapshot(near)
    pids = pool.do({lane: Call("pid") for lane in pool.lanes})
    assert pids[pool.take(moment)] == pids[near]


def test_calls_and_attributes(pool):
    pool.reset(2, seed=1)
    assert pool.do({2: Call("render")})[2].startswith("at ")
    assert pool.do({2: Call("end")})[2] == 30
    pool.do({2: SetAttribute("bonus", 100.0)})
    assert pool.step({2: 0})[2][2]
    pool.do({2: SetAttribute("bonus", 0.0)})
    with pytest.raises(AttributeError):
        pool.do({2: Call("nothing_of_this_name")})
    with pytest.raises(StateEncodingError):
        pool.do({2: Call("action_space")})
    with pytest.raises(ValueError, match="method of the pool"):
        pool.do({2: Call("reset")})


def test_results_belong_to_the_caller(pool):
    obs, info = pool.reset(0, seed=1)
    moment = pool.snapshot(0)
    before = obs.copy()
    obs += 1
    info["word"] = "changed"
    assert (pool.restore(0, moment)[0] == before).all()
    assert pool.restore(4, moment)[1]["word"] == "hello"


def test_actions_are_those_of_the_moment(pool):
    """What the caller does to an action afterwards changes no recipe."""
    pool.reset(0, seed=1)
    action = np.array(1)
    pool.step({0: action})
    moment = pool.snapshot(0)
    action[...] = 0
    assert pool.fetch(moment).recipe.actions[0] == 1


def test_different_lanes_may_have_different_environments():
    makers = [partial(Walk, 10), partial(Walk, 1000), "CartPole-v1"]
    with sg.ForkPool(makers, workers=2) as pool:
        for lane in pool.lanes:
            pool.reset(lane, seed=1)
        ends = [pool.introduction(lane).action_space.n for lane in pool.lanes]
        assert ends == [2, 2, 2]
        moment = pool.snapshot(0)
        with pytest.raises(SpecMismatchError, match=r"lane 1: .*other arguments"):
            pool.restore(1, moment)
        pool.step({1: 1})  # it goes on
        with pytest.raises(SpecMismatchError, match=r"lane 2: "):
            pool.restore(2, moment)


def test_what_is_not_forkable_is_made_so():
    with sg.ForkPool(not_forkable, 3, workers=1) as pool:
        pool.reset(0, seed=1)
        forks = pool.branch(0, 2)
        results = pool.step(dict.fromkeys([0, *forks], 1))
        assert len({result[0] for result in results.values()}) == 1


def test_tensors_arrive_as_what_they_are():
    torch = pytest.importorskip("torch")

    def make():
        return gym.wrappers.NumpyToTorch(Walk())

    with sg.ForkPool(make, 2, workers=1) as pool:
        obs, _ = pool.reset(0, seed=1)
        assert isinstance(obs, torch.Tensor)
        pool.step({0: torch.tensor(1)})
        (fork,) = pool.branch(0, 1)
        assert isinstance(pool.last(fork)[0], torch.Tensor)


def test_faults_of_making_one_show_at_once():
    def broken():
        raise LookupError("there is no such world")

    class Unknown(gym.Wrapper):
        pass

    with pytest.raises(LookupError, match="no such world"):
        sg.ForkPool(broken, 4, workers=2)
    with pytest.raises(UnknownWrapperError):
        sg.ForkPool(lambda: Unknown(Walk()), 2)
    with pytest.raises(gym.error.Error):
        sg.ForkPool("NoSuchEnvironment-v0", 2)
    with pytest.raises(sg.SandboxGymError):
        sg.ForkPool(lambda: 3, 1)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    "arguments",
    [
        {"lanes": 0},
        {"lanes": None},
        {"lanes": 2, "workers": 0},
        {"lanes": 2, "time_limit": [1.0]},
        {"lanes": 2, "env_kwargs": {"end": 3}},
    ],
)
def test_impossible_pools_are_refused(arguments):
    with pytest.raises(ValueError):
        sg.ForkPool(walk, **arguments)


def test_exceptions_of_classes_unknown_here_are_named():
    class OwnError(Exception):
        pass

    class Odd(Walk):
        def step(self, action):
            raise OwnError("strange")

    with sg.ForkPool(Odd, 1) as pool:
        pool.reset(0, seed=1)
        with pytest.raises(EnvironmentRaisedError, match=r"OwnError: lane 0: strange"):
            pool.step({0: 1})


def test_a_closed_pool_and_a_foreign_handle_are_refused(pool):
    other = sg.ForkPool(limited_walk, 1)
    other.reset(0, seed=1)
    moment = other.snapshot(0)
    with pytest.raises(SpecMismatchError, match="another pool"):
        pool.restore(0, moment)
    other.close()
    other.close()
    with pytest.raises(PoolClosedError):
        other.reset(0, seed=1)
    with pytest.raises(IndexError):
        pool.reset(6)


def test_a_backend_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "sandboxgym.pool.ray", raising=False)
    with pytest.raises(MissingDependencyError, match=r"sandboxgym\[ray\]"):
        sg.ForkPool(limited_walk, 2, backend="ray")
    with pytest.raises(ValueError, match="backend 'moon'"):
        sg.ForkPool(limited_walk, 2, backend="moon")


def test_where_a_lane_lives(pool):
    pids = pool.do({lane: Call("pid") for lane in pool.lanes})
    assert {lane: pool.where(lane).pid for lane in pool.lanes} == pids
