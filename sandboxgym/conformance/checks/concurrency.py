"""Forks that are used at the same time, in threads and in processes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Case, Lab, Script
from sandboxgym.conformance.outcome import CheckFailedError, CheckNotRunError
from sandboxgym.conformance.subject import Seen, Subject
from sandboxgym.conformance.worker import play_elsewhere
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.core.stack import Stack

THREADS = 4
ROUNDS = 5
SWITCH_SECONDS = 1e-5
HASH_SEEDS = (4, 5, 6, 7)


@check("26-forks-in-threads", needs=("12",))
def forks_in_threads(lab: Lab) -> None:
    """A search with threads puts one fork into each; what they share mixes their episodes."""
    parent = lab.make()
    if not Stack.of(parent.env).base.fidelity.threads:
        raise CheckNotRunError("the environment does not claim that its forks may run in threads")
    script = lab.scripts[0]
    lab.doing = script
    at = script.moments[0]
    case = lab.case(parent, script, at)
    parent.restore(case.snapshot)
    ways = [_way_alone(lab, parent, case, salt) for salt in range(30, 30 + THREADS)]
    lanes = [
        _Lane(fork, case.snapshot, way)
        for fork, way in zip(lab.fork(parent, THREADS), ways, strict=True)
    ]
    with _eager_switching():
        _run_all(lanes)
    for lane in lanes:
        lab.doing = Script(script.seed, case.past_actions + lane.way.actions, [])
        if lane.error is not None:
            raise lane.error
        for seen in lane.rounds:
            for step, (one, other) in enumerate(zip(lane.way.trace[1:], seen, strict=True), at + 1):
                lab.same(one, other, f"a fork in one of {THREADS} threads, step {step}", step)


def _way_alone(lab: Lab, parent: Subject, case: Case, salt: int) -> Script:
    """What a fork does while no other one moves."""
    (fork,) = lab.fork(parent, 1)
    return lab.detour(fork, case.past[-1], lab.depth, salt)


class _Lane(threading.Thread):
    """A fork that goes its way again and again, in a thread of its own."""

    def __init__(self, fork: Subject, start: Snapshot, way: Script) -> None:
        super().__init__(daemon=True)
        self.fork = fork
        self.start_from = start
        self.way = way
        self.barrier: threading.Barrier | None = None
        self.rounds: list[list[Seen]] = []
        self.error: Exception | None = None

    def run(self) -> None:
        assert self.barrier is not None
        try:
            for _ in range(ROUNDS):
                self.barrier.wait()
                self.fork.restore(self.start_from)
                self.rounds.append(self.fork.play(self.way.actions))
        except threading.BrokenBarrierError:
            return  # another lane has failed, and will say why
        except Exception as error:  # noqa: BLE001 - told in the thread of the check
            self.error = error
            self.barrier.abort()


def _run_all(lanes: Sequence[_Lane]) -> None:
    barrier = threading.Barrier(len(lanes))
    for lane in lanes:
        lane.barrier = barrier
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()


@contextmanager
def _eager_switching() -> Iterator[None]:
    """Let threads take turns far more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@check("27-restores-in-many-processes", needs=("09",))
def restores_in_many_processes(lab: Lab) -> str | None:
    """Pools send one snapshot to all workers at once; files and ports of a fixed name collide."""
    cases = list(lab.cases())
    jobs = [{"snapshot": case.snapshot.to_bytes(), "actions": case.rest} for case in cases] * 2
    lab.doing = None
    for answers in play_elsewhere(lab, jobs, HASH_SEEDS, at_once=True):
        for case, answer in zip(cases * 2, answers, strict=True):
            lab.doing = case.script
            how = f"restored to step {case.at} in {len(HASH_SEEDS)} processes at once"
            if isinstance(answer, str):
                if Stack.of(case.maker.env).base.fidelity.portable:
                    raise CheckFailedError(f"refused when {how}: {answer}", step=case.at)
                return f"not portable, and says so when asked: {how}: {answer}"
            expected = [case.moment, *case.future]
            for step, (one, other) in enumerate(zip(expected, answer, strict=True), case.at):
                lab.same(one, other, f"{how}, step {step}", step)
    return None
