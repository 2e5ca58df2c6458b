"""A pool over a Ray cluster: three nodes on this machine, of which one is killed in the midst."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'sandboxgym[ray]'")
pytestmark = pytest.mark.peers

import sandboxgym as sg  # noqa: E402
from benchmarks.pool_cluster import Nodes, chain  # noqa: E402
from benchmarks.pool_faults import Killer, play  # noqa: E402
from sandboxgym.core.errors import LaneHungError, LanePoisonedError  # noqa: E402
from sandboxgym.pool import Restore, Step  # noqa: E402
from sandboxgym.pool.handles import Parcel  # noqa: E402
from sandboxgym.pool.ray import RayBackend  # noqa: E402
from tests.pool.toys import Walk, limited_walk, plain, walk  # noqa: E402
from tests.waiting import wait_until  # noqa: E402

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster():
    with Nodes(3) as nodes:
        yield nodes
    wait_until(lambda: not nodes.processes(), seconds=60)


@pytest.fixture(autouse=True)
def nothing_is_left(cluster):
    yield
    wait_until(lambda: not cluster.of_pools(), seconds=60)


class Large(Walk):
    """A walk whose snapshots are too large for a message."""

    def get_state(self):
        return {**super().get_state(), "load": np.arange(100_000)}

    def set_state(self, state):
        super().set_state({key: state[key] for key in ("at", "taken")})


def nodes_of(pool: sg.ForkPool) -> list[str]:
    return [pool.where(lane).node for lane in pool.lanes]


def test_one_line_makes_a_pool_of_the_cluster(cluster):
    alone = [limited_walk() for _ in range(4)]
    with sg.ForkPool(limited_walk, 4, backend="ray") as pool:
        assert len({pool.where(lane).pid for lane in pool.lanes}) == 3  # processors of the cluster
        for lane in pool.lanes:
            assert plain(pool.reset(lane, seed=lane)) == plain(alone[lane].reset(seed=lane))
        for step in range(8):
            results = pool.step({lane: (lane + step) % 2 for lane in pool.lanes})
            expected = {lane: alone[lane].step((lane + step) % 2) for lane in pool.lanes}
            assert plain(results) == plain(expected)


def test_errors_come_typed_and_with_the_lane(cluster):
    with sg.ForkPool(walk, 2, workers=2, backend="ray") as pool:
        for lane in pool.lanes:
            pool.reset(lane, seed=1)
        with pytest.raises(sg.SandboxGymError, match="lane 1: no such word here"):
            pool.step({1: "refuse"})
        with pytest.raises(ZeroDivisionError, match="lane 0"):
            pool.step({0: "raise"})
        assert len(pool.step({1: 0})) == 1


def test_large_snapshots_go_through_the_object_store_and_only_where_they_are_not(cluster):
    alone = Large()
    alone.reset(seed=3)
    alone.step(1)
    with sg.ForkPool(Large, 4, workers=2, backend=RayBackend(num_cpus=1)) as pool:
        assert len(set(nodes_of(pool))) == 2  # a node has one processor
        pool.reset(0, seed=3)
        pool.step({0: 1})
        moment = pool.snapshot(0)
        assert pool.take(near=moment) == 1
        pool.restore(1, moment)
        assert moment.blob is None  # it was there
        pool.do({lane: Restore(moment) for lane in (2, 3)})
        assert isinstance(moment.blob, Parcel)
        expected = plain(alone.step(1))
        assert [plain(r) for r in pool.step(dict.fromkeys(pool.lanes, 1)).values()] == [
            expected
        ] * 4
        snapshot = sg.Snapshot.from_bytes(pool.fetch(moment).to_bytes())
        other = Large()
        sg.restore(other, snapshot)
        assert plain(other.step(1)) == expected


def test_a_snapshot_that_is_lost_with_its_actor_is_made_again(cluster):
    with sg.ForkPool(Large, 3, workers=3, backend="ray") as pool:
        pool.reset(0, seed=3)
        first = pool.step({0: 1})[0]
        moment = pool.snapshot(0)
        pool.restore(1, moment)
        digest = pool.fetch(moment).digest
        for lane in (0, 1):
            ray.kill(pool._crew.posts[lane].link.actor)  # the snapshot's bytes belong to the first
        wait_until(lambda: pool._crew.backend.contents(moment.blob) is None, seconds=60)
        assert plain(pool.do({2: Restore(moment)})[2][0]) == plain(first[0])
        assert pool.fetch(moment).digest == digest
        assert len(pool.step(dict.fromkeys(pool.lanes, 1), on_error="return")) == 3


def test_lanes_that_always_crash_or_hang_are_reported_and_stop_nobody(cluster):
    limits = [60.0, 60.0, 2.0]
    with sg.ForkPool(walk, 3, workers=2, patience=0, time_limit=limits, backend="ray") as pool:
        for lane in pool.lanes:
            pool.reset(lane, seed=1)
        results = pool.step({0: 1, 1: "crash", 2: "hang"}, on_error="return")
        assert isinstance(results[1], LanePoisonedError)
        assert "killed by SIGKILL" in str(results[1])
        assert isinstance(results[2], LaneHungError)
        again = pool.step({1: 1, 2: 1})
        assert plain(again[1]) == plain(again[2]) == plain(results[0])


def test_dropping_a_pool_leaves_nothing(cluster):
    pool = sg.ForkPool(walk, 2, workers=2, backend="ray")
    pool.reset(0, seed=1)
    assert len(cluster.of_pools()) >= 4
    del pool
    gc.collect()


OWNER = """
    import sys, time
    import sandboxgym as sg
    from sandboxgym.pool import Step
    from sandboxgym.pool.ray import RayBackend
    from tests.pool.toys import walk
    pool = sg.ForkPool(walk, 2, workers=2, backend=RayBackend(sys.argv[1], num_cpus=0))
    for lane in pool.lanes:
        pool.reset(lane, seed=1)
    pool.send({0: Step("hang")})
    print("ready", flush=True)
    time.sleep(100)
"""


def test_an_owner_that_is_killed_leaves_nothing(cluster):
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(OWNER), cluster.address],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        assert owner.stdout is not None
        while owner.stdout.readline().strip() != "ready":
            assert owner.poll() is None
        assert len(cluster.of_pools()) >= 4
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(owner.pid, signal.SIGKILL)
        owner.communicate()


def test_a_node_and_workers_that_are_killed_change_no_episode(cluster):
    make = partial(
        gym.make, "sandboxgym/ALFWorld-v0", source="synthetic", num_games=2, max_episode_steps=20
    )
    lost: list[str] = []
    with sg.ForkPool(make, 8, workers=4, backend=RayBackend(num_cpus=0)) as pool:
        killer = Killer(pool, kills=6, seed=5, victims=chain)

        def disturb(share):
            if share > 0.3 and not lost:  # a whole node: its raylet, its store, and all its workers
                lost.append(cluster.kill_one(pool))
            killer.act(share)

        undisturbed = play(pool, 150, 0, lambda share: None)
        assert pool.take_restarts() == []
        disturbed = play(pool, 150, 0, disturb)
        restarts = pool.take_restarts()
        assert not set(lost) & set(nodes_of(pool))
    assert len(lost) == 1
    assert killer.done > 3
    assert len(restarts) > 3
    assert disturbed == undisturbed


def test_what_is_under_way_when_its_node_goes_is_done_elsewhere(cluster):
    alone = walk()
    with sg.ForkPool(walk, 3, workers=3, backend=RayBackend(num_cpus=0)) as pool:
        for lane in pool.lanes:
            pool.reset(lane, seed=4)
        alone.reset(seed=4)
        pool.send({lane: Step(1) for lane in pool.lanes})
        killed = cluster.kill_one(pool)
        expected = plain(alone.step(1))
        assert [plain(result) for result in pool.wait(pool.lanes).values()] == [expected] * 3
        expected = plain(alone.step(0))
        results = pool.step(dict.fromkeys(pool.lanes, 0))
        assert [plain(result) for result in results.values()] == [expected] * 3
        assert killed not in nodes_of(pool)
