"""What forking costs: nothing may be left behind, and times and memory are reported."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from sandboxgym.conformance import processes
from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Case, Lab
from sandboxgym.conformance.outcome import CheckFailedError
from sandboxgym.conformance.usage import PYTHON_MEMORY, TOTAL_MEMORY, Meter, Usage, metered

ROUNDS = 200
FORKS = 5
ATTEMPTS = 3
ALLOWED_BYTES_A_ROUND = {PYTHON_MEMORY: 64, TOTAL_MEMORY: 20_000}
TIMED_ROUNDS = 20
HELD_SNAPSHOTS = 20


@check("24-no-leaks", needs=("14",))
def no_leaks(lab: Lab) -> str:
    """A search takes millions of snapshots; whatever one leaves behind, it leaves millions of."""
    with metered(lab.observer) as meter:
        script = lab.scripts[0]
        lab.doing = script
        case = lab.case(lab.make(), script, script.moments[-1])
        counted = _repeat(meter, lambda: _forks(lab, case), f"{FORKS} forks, closed again,", case)
        rounds = f"{ROUNDS // 2} rounds of restore, step and snapshot"
        counted = _repeat(meter, lambda: _rounds(case), rounds, case)
    return f"counted: {', '.join(counted)}"


def _rounds(case: Case) -> None:
    for _ in range(ROUNDS // 2):
        case.maker.restore(case.snapshot)
        case.maker.step(case.rest[0])
        case.maker.snapshot()


def _forks(lab: Lab, case: Case) -> None:
    case.maker.restore(case.snapshot)
    for _ in range(FORKS):
        (fork,) = lab.fork(case.maker, 1)
        fork.step(case.rest[0])
        lab.let_go(fork)


def _repeat(meter: Meter, work: Callable[[], None], what: str, case: Case) -> Usage:
    """Fail if some work leaves more behind every time that it is done.

    Caches fill up in the first rounds, and other parts of the process have needs of their own now
    and then. What still grows after that, and every time one looks, is a leak.
    """
    work()
    usage = [meter.read()]
    left: str | None = None
    for _ in range(ATTEMPTS):
        usage = [usage[-1]]
        for _ in range(2):
            work()
            usage.append(meter.read(expected=usage[-1]))
        left = _left_behind(usage)
        if left is None:
            return usage[0]
    raise CheckFailedError(f"{what} left {left} behind, and so did the next", step=case.at)


def _left_behind(usage: list[Usage]) -> str | None:
    """What grew from the first to the second count, and from that to the third."""
    for what in usage[0]:
        growth = min(usage[1][what] - usage[0][what], usage[2][what] - usage[1][what])
        if growth > ALLOWED_BYTES_A_ROUND.get(what, 0) * ROUNDS // 2:
            return f"{growth} {what}"
    return None


@check("25-latency", needs=("10",))
def latency(lab: Lab) -> str:
    """How often one can afford to fork depends on it."""
    script = lab.scripts[0]
    at = script.moments[-1]
    lab.doing = script
    case = lab.case(lab.make(), script, at)
    maker, snapshot = case.maker, case.snapshot
    recipe = snapshot.drop_state()

    def step() -> float:
        maker.restore(snapshot)
        return _seconds(lambda: maker.step(case.rest[0]))

    timings: dict[str, Callable[[], float]] = {
        "step": step,
        "snapshot": lambda: _seconds(maker.snapshot),
        "restore": lambda: _seconds(lambda: maker.restore(snapshot)),
        f"replay of {at} steps": lambda: _seconds(lambda: maker.restore(recipe)),
    }
    medians = {
        what: statistics.median(measure() for _ in range(TIMED_ROUNDS))
        for what, measure in timings.items()
    }
    times = ", ".join(f"{what} {_spelled(seconds)}" for what, seconds in medians.items())
    held = f", {_held(lab, case)} of memory held" if snapshot.held is not None else ""
    way = f"by {snapshot.created_by}: {times}"
    return f"{way}; a snapshot has {len(snapshot.to_bytes())} bytes as a file{held}"


def _held(lab: Lab, case: Case) -> str:
    """How much memory each snapshot takes in all processes, beside what they share."""

    def taken() -> int:
        pids = [lab.observer, *(p.pid for p in processes.descendants(lab.observer))]
        return processes.memory(pids)

    case.maker.restore(case.snapshot)
    before = taken()
    kept = []
    for action in [*case.rest, *case.rest][:HELD_SNAPSHOTS]:
        case.maker.restore(case.snapshot)
        case.maker.step(action)
        kept.append(case.maker.snapshot())
    return f"{max(0, taken() - before) // len(kept) // 1024} kB"


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _spelled(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us" if seconds < 0.01 else f"{seconds * 1e3:.0f} ms"
