"""Workers die, hang and are killed; every episode ends as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import time
from functools import partial

import gymnasium as gym
import pytest

import sandboxgym as sg
from sandboxgym.core.errors import (
    LaneHungError,
    LanePoisonedError,
    NotResetError,
    RestoreMismatchError,
    WorkerLostError,
)
from sandboxgym.pool import Reset, Restore, SetAttribute, Step
from tests.pool.toys import (
    Walk,
    counted_walk,
    fickle,
    limited_walk,
    never_built,
    normalized_walk,
    plain,
    walk,
)


def kill(pool: sg.ForkPool, *numbers: int) -> None:
    """Kill the workers of these posts, or all."""
    for post in pool._crew.posts:
        if post.link is not None and (not numbers or post.number in numbers):
            os.kill(post.link.pid, signal.SIGKILL)


def without_time(results):
    """Results without the durations that `RecordEpisodeStatistics` puts into infos."""
    found = plain(results)
    for result in found.values():
        if "episode" in result[-1]:
            result[-1]["episode"].pop("t")
    return found


@pytest.mark.parametrize("make", [limited_walk, counted_walk, normalized_walk])
def test_lanes_go_on_exactly_where_they_were(make):
    """Through seeded and unseeded resets, with wrappers that gather statistics over episodes."""
    alone = [make() for _ in range(4)]
    with sg.ForkPool(make, 4, workers=2) as pool:
        for episode in range(3):
            seeds = {lane: None if episode == 1 else lane + episode for lane in range(4)}
            results = pool.do({lane: Reset(seed) for lane, seed in seeds.items()})
            expected = {lane: alone[lane].reset(seed=seed) for lane, seed in seeds.items()}
            assert plain(results) == plain(expected)
            for step in range(8):
                if step in (0, 3, 7):
                    kill(pool, step % 2)
                results = pool.step(dict.fromkeys(range(4), step % 2))
                expected = {lane: env.step(step % 2) for lane, env in enumerate(alone)}
                assert without_time(results) == without_time(expected)
        restarts = pool.take_restarts()
        assert {restart.lane for restart in restarts} == {0, 1, 2, 3}
        assert all("killed by SIGKILL" in restart.reason for restart in restarts)
        assert pool.take_restarts() == []


def test_each_lane_that_is_rebuilt_is_told_of_once():
    with sg.ForkPool(walk, 4, workers=2) as pool:
        for lane in (0, 1):
            pool.reset(lane, seed=lane)
        kill(pool)
        pool.step({0: 1})
        assert [(r.lane, r.step) for r in pool.take_restarts()] == [(0, 1)]
        pool.step({0: 1, 1: 1})
        assert [(r.lane, r.step) for r in pool.take_restarts()] == [(1, 1)]


def test_handles_outlive_the_workers_that_held_them():
    alone = walk()
    alone.reset(seed=2)
    alone.step(1)
    with sg.ForkPool(walk, 4, workers=2) as pool:
        pool.reset(0, seed=2)
        pool.step({0: 1})
        moment = pool.snapshot(0)
        reseeded = pool.branch(0, 1, seeds=[77])[0]
        deeper = pool.snapshot(reseeded)
        expected = plain(alone.step(1))
        reseeded_step = plain(pool.step({reseeded: 1})[reseeded])
        kill(pool)
        results = pool.do({lane: Restore(moment) for lane in (3, 0)})
        assert all(obs.tolist() == pool.last(0)[0].tolist() for obs, _ in results.values())
        assert all(plain(r) == expected for r in pool.step({0: 1, 3: 1}).values())
        pool.restore(2, deeper)
        assert plain(pool.step({2: 1})[2]) == reseeded_step


def test_a_snapshot_that_is_not_where_it_should_be_is_brought_again():
    with sg.ForkPool(walk, 4, workers=2) as pool:
        first = pool.reset(0, seed=2)
        moment = pool.snapshot(0)
        pool._crew.posts[1].hot.add(moment.key)  # it is not there
        results = pool.do({lane: Restore(moment) for lane in (2, 3)})
        assert plain(results) == {2: plain(first), 3: plain(first)}
        assert pool.take_restarts() == []


def test_fetching_a_snapshot_whose_worker_is_gone_disturbs_no_lane():
    for lanes in (1, 2):
        with sg.ForkPool(walk, lanes, workers=1) as pool:
            pool.reset(0, seed=2)
            moment = pool.snapshot(0)
            digest = pool.fetch(pool.snapshot(0)).digest
            pool.step({0: 1})
            kill(pool)
            time.sleep(0.2)  # until that shows
            with pytest.raises(sg.SandboxGymError):
                pool.step({0: "refuse"})
            assert pool.fetch(moment).digest == digest
            assert pool.last(0)[0][1] == 1
            pool.step({0: 1})


def test_a_worker_that_dies_in_the_midst_of_a_step(tmp_path):
    make = partial(Walk, 30, str(tmp_path / "mark"))
    alone = make()
    with sg.ForkPool(make, 4, workers=1) as pool:
        for lane in pool.lanes:
            pool.reset(lane, seed=5)
        alone.reset(seed=5)
        results = pool.step({0: 1, 1: "crash once", 2: 1, 3: 1})
        expected = plain(alone.step(1))
        assert [plain(results[lane]) for lane in (0, 2, 3)] == [expected] * 3
        assert results[1][4]["taken"] == 1
        restarted = {restart.lane for restart in pool.take_restarts()}
        assert {1, 2, 3} <= restarted  # lane 0 too, unless its answer had left before the crash


def test_a_worker_that_hangs_is_replaced(tmp_path):
    make = partial(Walk, 30, str(tmp_path / "mark"))
    with sg.ForkPool(make, 2, workers=1, time_limit=1.5) as pool:
        for lane in pool.lanes:
            pool.reset(lane, seed=5)
        results = pool.step({0: 0, 1: "hang once"})
        assert plain(results[0]) == plain(results[1])
        assert "no answer came" in pool.take_restarts()[0].reason


def test_a_lane_that_always_crashes_is_reported_and_stops_nobody():
    alone = walk()
    with sg.ForkPool(walk, 4, workers=1, patience=2) as pool:
        for lane in pool.lanes:
            pool.reset(lane, seed=1)
        alone.reset(seed=1)
        results = pool.step({0: 1, 1: "crash", 2: 1, 3: 1}, on_error="return")
        expected = plain(alone.step(1))
        assert [plain(results[lane]) for lane in (0, 2, 3)] == [expected] * 3
        assert isinstance(results[1], LanePoisonedError)
        assert "lane 1: 3 workers were lost" in str(results[1])
        assert "crash" in str(results[1])
        assert plain(pool.step({1: 1})[1]) == expected  # it is where it was before


def test_a_lane_that_always_hangs_is_reported():
    with sg.ForkPool(walk, 2, workers=1, patience=1, time_limit=[30.0, 1.0]) as pool:
        for lane in pool.lanes:
            pool.reset(lane, seed=1)
        with pytest.raises(LaneHungError, match=r"lane 1: 2 workers .*no answer came for"):
            pool.step({1: "hang"})
        pool.step({0: 1, 1: 1})


def test_an_environment_that_is_not_deterministic_is_not_passed_off_as_rebuilt():
    with sg.ForkPool(fickle, 2, workers=1) as pool:
        for lane in pool.lanes:
            pool.reset(lane, seed=1)
        pool.step({0: 1, 1: 1})
        kill(pool)
        with pytest.raises(RestoreMismatchError, match=r"lane 0: .*not deterministic"):
            pool.step({0: 1})
        with pytest.raises(NotResetError):
            pool.step({0: 1})
        pool.reset(0, seed=1)
        pool.step({0: 1})


def test_a_snapshot_that_cannot_be_made_again_leaves_the_lane_where_it_was():
    with sg.ForkPool(fickle, 1) as pool:
        pool.reset(0, seed=1)
        pool.step({0: 1})
        moment = pool.snapshot(0)
        kill(pool)
        pool.reset(0, seed=2)
        first = pool.step({0: 0})
        with pytest.raises(RestoreMismatchError, match="lane 0"):
            pool.restore(0, moment)
        assert plain(pool.last(0)) == plain(first[0])
        assert pool.snapshot(0).step == 1  # the lane is where it was, in the same worker
        pool.step({0: 0})


def test_a_worker_that_dies_while_it_builds_is_reported():
    with pytest.raises(WorkerLostError, match=r"lane\(s\) 0, 1 was lost .* while it built"):
        sg.ForkPool(never_built, 2, workers=1, patience=1)


def test_attributes_that_were_set_are_set_again():
    with sg.ForkPool(walk, 2, workers=1) as pool:
        pool.do({0: SetAttribute("bonus", 7.0)})
        pool.reset(0, seed=1)
        pool.reset(1, seed=1)
        kill(pool)
        results = pool.step({0: 0, 1: 0})
        assert results[0][0][0] == results[1][0][0] + 7


def test_the_keeper_may_be_killed_too():
    with sg.ForkPool(walk, 4, workers=2) as pool:
        for lane in pool.lanes:
            pool.reset(lane, seed=1)
        os.kill(pool._crew.backend._keeper._process.pid, signal.SIGKILL)
        results = pool.step(dict.fromkeys(pool.lanes, 1))
        assert len({str(plain(result)) for result in results.values()}) == 1


def test_an_interrupt_leaves_the_pool_usable():
    class InterruptedStepError(Exception):
        pass

    def interrupt(*_):
        raise InterruptedStepError

    alone = walk()
    alone.reset(seed=1)
    with sg.ForkPool(walk, 2, workers=1) as pool:
        pool.reset(0, seed=1)
        handler = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
            done = 0
            for _ in range(60):
                try:
                    pool.step({0: 0})
                except InterruptedStepError:
                    continue
                except sg.SandboxGymError:
                    pass
                done += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
        while pool.receive(on_error="return"):
            pass
        assert plain(pool.reset(0, seed=1)[0]) == plain(alone.reset(seed=1)[0])
        assert plain(pool.step({0: 1})[0]) == plain(alone.step(1))


def rollout(pool: sg.ForkPool, seed: int, killer=lambda: None) -> dict[int, list]:
    """One episode in each lane, with random commands of the world, chosen by `seed` alone."""
    results = pool.do({lane: Reset(seed + lane) for lane in pool.lanes})
    seen = {lane: [result] for lane, result in results.items()}
    live = {lane: info for lane, (_, info) in results.items()}
    dice = {lane: random.Random(f"{seed} {lane}") for lane in pool.lanes}
    while live:
        killer()
        commands = {
            lane: Step(dice[lane].choice(info["admissible_commands"]))
            for lane, info in live.items()
        }
        for lane, result in pool.do(commands).items():
            seen[lane].append(result)
            live[lane] = result[4]
            if result[2] or result[3]:
                del live[lane]
    return seen


def test_random_kills_change_no_episode():
    """Six episodes of ALFWorld, with and without eight kills at any moment."""
    make = partial(gym.make, "sandboxgym/ALFWorld-v0", source="synthetic", num_games=2)
    dice = random.Random(3)
    kills = 0

    with sg.ForkPool(make, 6, workers=2) as pool:

        def killer():
            nonlocal kills
            if kills < 8 and dice.random() < 0.3:
                kills += 1
                kill(pool, dice.randrange(2))

        undisturbed = rollout(pool, 0)
        assert pool.take_restarts() == []
        disturbed = rollout(pool, 0, killer)
        assert kills == 8
        assert pool.take_restarts()
    assert disturbed == undisturbed
