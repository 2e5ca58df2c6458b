"""No process, descriptor or snapshot is left, however a pool or its owner ends."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import sandboxgym as sg
from sandboxgym.conformance.processes import descendants
from sandboxgym.core.errors import PoolClosedError
from sandboxgym.pool import Call, Reset, Restore
from tests.pool.toys import limited_walk, walk
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]


def below() -> set[int]:
    """All processes below this one, those included that ended and were not waited for."""
    return {process.pid for process in descendants(os.getpid())}


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the folder changes while it is read


def gone(pids) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.fixture
def before():
    gc.collect()
    return below(), descriptors()


def check_nothing_is_left(before):
    gc.collect()
    wait_until(lambda: below() <= before[0])
    assert descriptors() <= before[1]


def test_closing_leaves_nothing(before):
    pool = sg.ForkPool(walk, 4, workers=2)
    assert len(below() - before[0]) == 3
    for lane in pool.lanes:
        pool.reset(lane, seed=1)
    pool.send({0: Reset(1)})
    pool.close()
    check_nothing_is_left(before)


def test_dropping_it_leaves_nothing(before):
    pool = sg.ForkPool(walk, 4, workers=2)
    pool.reset(0, seed=1)
    moment = pool.snapshot(0)
    del pool
    check_nothing_is_left(before)
    assert moment.step == 0


def test_a_failure_to_build_leaves_nothing(before):
    def broken():
        raise LookupError

    with contextlib.suppress(LookupError):
        sg.ForkPool([walk, broken], workers=2)
    check_nothing_is_left(before)


def test_killed_and_hung_workers_leave_nothing(before):
    with sg.ForkPool(walk, 4, workers=2, time_limit=0.5, patience=0) as pool:
        for lane in pool.lanes:
            pool.reset(lane, seed=1)
        inside = descriptors()
        for _ in range(4):
            pool.step({0: "crash", 3: "hang"}, on_error="return")
            pool.step({1: 0, 2: 0})
        assert len(below() - before[0]) == 3  # no zombie either
        assert descriptors() <= inside
    check_nothing_is_left(before)


def test_snapshots_go_with_their_handles():
    with sg.ForkPool(walk, 2, workers=1) as pool:
        pool.reset(0, seed=1)
        moments = [pool.snapshot(0) for _ in range(50)]
        pool.restore(1, moments[7])
        (post,) = pool._crew.posts
        assert len(post.hot) == 50
        del moments[1:]
        gc.collect()
        pool.step({0: 1})
        assert len(post.hot) == 1
        pool.restore(1, moments[0])


OWNER = """
    import os, sys, time
    import sandboxgym as sg
    from tests.pool.toys import walk
    pool = sg.ForkPool(walk, 4, workers=2)
    for lane in pool.lanes:
        pool.reset(lane, seed=1)
    if "hang" in sys.argv:
        from sandboxgym.pool import Step
        pool.send({0: Step("hang")})
    if "fork" in sys.argv and os.fork() == 0:  # it holds copies of all connections
        time.sleep(60)
    pids = [post.link.pid for post in pool._crew.posts]
    print(*pids, pool._crew.backend._keeper._process.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("what", ["", "hang", "fork"])
def test_an_owner_that_is_killed_leaves_nothing(what):
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(OWNER), what],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        assert owner.stdout is not None
        pids = [int(pid) for pid in owner.stdout.readline().split()]
        assert len(pids) == 3
        os.kill(owner.pid, signal.SIGKILL)
        wait_until(lambda: gone(pids))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(owner.pid, signal.SIGKILL)
        owner.communicate()


def test_a_fork_of_the_owner_can_do_no_harm():
    with sg.ForkPool(walk, 2, workers=1) as pool:
        pool.reset(0, seed=1)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                pool.step({0: 1})
            except PoolClosedError:
                pool.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        pool.step({0: 1})


def test_what_a_killed_worker_has_started_is_ended():
    """An environment's own child process, which would live on, goes some time after its worker."""

    class Server(type(walk())):
        def reset(self, **kwargs):
            self.server = subprocess.Popen(["sleep", "300"])
            return super().reset(**kwargs)

        def server_pid(self):
            return self.server.pid

        def close(self):
            self.server.kill()

    with sg.ForkPool(Server, 2, workers=1) as pool:
        pool.reset(0, seed=1)
        server = pool.do({0: Call("server_pid")})[0]
        os.kill(pool._crew.posts[0].link.pid, signal.SIGKILL)
        pool.step({0: 1})
        wait_until(lambda: gone([server]))
        pool.step({0: 1})


def test_a_snapshot_can_be_larger_than_what_a_socket_holds():
    class Large(type(walk())):
        def get_state(self):
            return {**super().get_state(), "load": b"x" * 3_000_000}

        def set_state(self, state):
            super().set_state({k: v for k, v in state.items() if k != "load"})

        def render(self):
            return "r" * 3_000_000

    with sg.ForkPool(Large, 4, workers=2) as pool:
        for lane in (0, 1):
            pool.reset(lane, seed=1)
        moments = [pool.snapshot(0), pool.snapshot(1)]
        pool.do({2: Restore(moments[0]), 3: Restore(moments[1])})
        shown = pool.do({lane: Call("render") for lane in pool.lanes})
        assert all(len(text) == 3_000_000 for text in shown.values())
        pool.send({0: Call("render"), 1: Call("render")})
        pool.send({lane: Call("render", kwargs={}) for lane in (2, 3)})
        assert len(pool.wait(pool.lanes)) == 4


def test_limits_of_episodes_hold_after_a_restore():
    with sg.ForkPool(limited_walk, 2, workers=2) as pool:
        pool.reset(0, seed=1)
        for _ in range(5):
            pool.step({0: 0})
        pool.restore(1, pool.snapshot(0))
        ends = [pool.step({1: 0})[1][3] for _ in range(3)]
        assert ends == [False, False, True]
