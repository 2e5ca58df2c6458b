"""What forking costs: nothing may be left behind, and the times are reported."""

from __future__ import annotations

import gc
import statistics
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Lab
from sandboxgym.conformance.outcome import CheckFailedError

ROUNDS = 200
ATTEMPTS = 3
BYTES_A_ROUND = 64
TIMED_ROUNDS = 20


@check("24-no-leaks", needs=("14",))
def no_leaks(lab: Lab) -> str:
    """A search takes millions of snapshots; whatever one leaves behind, it leaves millions of."""
    with _own_temporary_folder() as folder, _traced_memory():
        script = lab.scripts[0]
        lab.doing = script
        at = script.moments[-1]
        subject = lab.make()
        case = lab.case(subject, script, at)

        def rounds(n: int) -> dict[str, int]:
            for _ in range(n):
                subject.restore(case.snapshot)
                subject.step(case.rest[0])
                subject.snapshot()
            return _usage(folder)

        # Caches fill up in the first rounds, and other parts of the process have needs of their
        # own now and then. What still grows after that, and every time one looks, is a leak.
        usage = [rounds(ROUNDS // 4)]
        for _ in range(ATTEMPTS):
            usage = [usage[-1], rounds(ROUNDS // 2), rounds(ROUNDS // 2)]
            left = _left_behind(usage)
            if left is None:
                return f"counted: {', '.join(usage[0])}"
    raise CheckFailedError(
        f"{ROUNDS // 2} rounds of restore, step and snapshot left {left} behind, and so did the "
        "next",
        step=at,
    )


def _left_behind(usage: list[dict[str, int]]) -> str | None:
    """What grew from the first to the second count, and from that to the third."""
    for what in usage[0]:
        growth = min(usage[1][what] - usage[0][what], usage[2][what] - usage[1][what])
        allowed = BYTES_A_ROUND * ROUNDS // 2 if what == "bytes of memory" else 0
        if growth > allowed:
            return f"{growth} {what}"
    return None


def _usage(folder: Path) -> dict[str, int]:
    """Counts of what can leak, as far as this system lets itself be asked."""
    gc.collect()
    usage = {
        "bytes of memory": tracemalloc.get_traced_memory()[0],
        "temporary files": sum(1 for _ in folder.rglob("*")),
        "threads": threading.active_count(),
    }
    if Path("/proc/self/fd").is_dir():
        usage["open files"] = len(list(Path("/proc/self/fd").iterdir()))
    children = list(Path("/proc/self/task").glob("*/children"))
    if children:
        usage["child processes"] = sum(len(file.read_text().split()) for file in children)
    return usage


@contextmanager
def _own_temporary_folder() -> Iterator[Path]:
    """Let `tempfile` use a folder of our own, in which every file that is left counts."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="sandboxgym-check-") as folder:
        tempfile.tempdir = folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before


@contextmanager
def _traced_memory() -> Iterator[None]:
    running = tracemalloc.is_tracing()
    if not running:
        tracemalloc.start()
    try:
        yield
    finally:
        if not running:
            tracemalloc.stop()


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
    times = ", ".join(f"{what} {seconds * 1e6:.0f} us" for what, seconds in medians.items())
    return f"{times}, {len(snapshot.to_bytes())} bytes as a file"


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
