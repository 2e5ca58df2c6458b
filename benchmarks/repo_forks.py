"""What forking a repository sandbox costs, against copying its tree (and Docker, where it is).

Called by `fork_latency.py --sandbox repo`. The tree has 200 MB in 10,000 files, the shell lives
before and after. Times are in milliseconds: median, 10th and 90th percentile. Between any two
snapshots a command changes a file, and all parts of a run take turns, so that what else the
machine does falls on all alike. Processor time is measured too: it says what an idle machine would
need, also where this one is not. Where Docker cannot be measured, the result says so and why.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.repo.backend import Base, Limits
from sandboxgym.sandboxes.repo.bases import base_of_folder
from sandboxgym.sandboxes.repo.overlay.backend import OverlayBackend

FILES, FILE_BYTES = 10_000, 20_000
DEPTHS = (1, 50, 100, 300)
FORKS = 8
REST = 15  # seconds


def repo_fork_latencies(calls: int = 20, files: int = FILES) -> dict[str, Any]:
    """Snapshot, restore and fork at several depths, and a copy of the tree, in one run."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch, "tree")
        write_tree(tree, files)
        result: dict[str, Any] = {
            "tree": {"files": files, "bytes": files * FILE_BYTES},
            "load_before": os.getloadavg()[0],
            "overlay": overlay(tree, Path(scratch, "cache"), calls),
            "copy_of_the_tree": {"copy_ms": spread(copies(tree, Path(scratch, "copy"), 3))},
            "processor_ms": processor_times(tree, Path(scratch, "cache"), 40),
            "load_after": os.getloadavg()[0],
        }
        copied = result["copy_of_the_tree"]["copy_ms"]["median"]
        deepest = result["overlay"]["depths"][-1]
        result["copy_over_snapshot"] = round(copied / deepest["snapshot_ms"]["median"], 1)
        result["docker"] = docker_latencies(tree)
    return result


def docker_latencies(tree: Path) -> dict[str, Any]:
    """The same with Docker; where it is not measured, that and why."""
    try:
        from benchmarks.docker_forks import docker_fork_latencies
    except ImportError as error:
        return {"measured": False, "why_not": str(error)}
    return docker_fork_latencies(tree)


def write_tree(tree: Path, files: int) -> None:
    """Files that no compression makes small, a hundred in each folder."""
    dice = random.Random(0)
    for number in range(files):
        folder = tree / f"package{number // 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"module{number}.bin").write_bytes(dice.randbytes(FILE_BYTES))


def copies(tree: Path, target: Path, times: int) -> list[float]:
    """How long copying the tree takes, as a sandbox without layers would."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        shutil.copytree(tree, target, symlinks=True)
        taken.append(time.perf_counter() - start)
        shutil.rmtree(target)
    return taken


def overlay(tree: Path, cache: Path, calls: int) -> dict[str, Any]:
    """The overlay backend at each depth; the depths grow in one sandbox."""
    base = base_of_folder(tree, cache=cache)
    os.sync()
    time.sleep(REST)  # else the disk is still busy with these copies at the first depths
    depths = []
    with OverlayBackend(Limits()) as backend:
        sandbox = backend.create(base)
        sandbox.run("export x=1; f() { echo $x; }; cd package0")
        moments = [sandbox.snapshot()]
        for depth in DEPTHS:
            while len(moments) < depth:
                sandbox.run(f"echo {len(moments)} > changed{len(moments) % 10}")
                moments.append(sandbox.snapshot())
            depths.append({"depth": depth, **at_depth(backend, sandbox, calls)})
        alone = [timed(lambda: sandbox.run("true")) for _ in range(calls)]
    return {"depths": depths, "command_ms": spread(alone), "privileged": backend.privileged}


def at_depth(backend: OverlayBackend, sandbox: Any, calls: int) -> dict[str, Any]:
    """All that can be done with a sandbox as it is, in turns."""
    taken: dict[str, list[float]] = defaultdict(list)
    start = sandbox.snapshot()
    for number in range(calls):
        sandbox.restore(start)
        sandbox.run("echo changed > changed")
        taken["snapshot_ms"].append(timed(sandbox.snapshot))
        sandbox.run("echo more >> changed")
        taken["restore_ms"].append(timed(lambda: sandbox.restore(start)))
        if number % 4 == 0:
            forks: list[Any] = []
            taken["fork_of_8_ms"].append(
                timed(lambda forks=forks: forks.extend(fork(backend, start)))
            )
            for twin in forks:
                assert twin.run("f").output == "1\n"
                twin.close()
    return {name: spread(times) for name, times in taken.items()} | {"layers": len(start.layers)}


def fork(backend: OverlayBackend, moment: Any) -> list[Any]:
    """Eight sandboxes that go on from a moment, all of them started."""
    forks = [backend.fork(moment) for _ in range(FORKS)]
    for one in forks:
        one.ready()
    return forks


def processor_times(tree: Path, cache: Path, calls: int) -> dict[str, float]:
    """Processor time of one call of each kind, of all processes of the backend together."""
    base = base_of_folder(tree, cache=cache)
    once, often = ({name: processor_time(base, name, n) for name in ACTS} for n in (1, 1 + calls))
    return {name: round(1000 * (often[name] - once[name]) / calls, 1) for name in ACTS}


ACTS: dict[str, Callable[[OverlayBackend, Any, Any], Any]] = {
    "command": lambda backend, sandbox, moment: sandbox.run("true"),
    "snapshot": lambda backend, sandbox, moment: sandbox.snapshot(),
    "restore": lambda backend, sandbox, moment: sandbox.restore(moment),
    "fork and close": lambda backend, sandbox, moment: backend.fork(moment).close(),
}


def processor_time(base: Base, name: str, calls: int) -> float:
    """Seconds of a backend that makes a sandbox and does something this often."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with OverlayBackend(Limits()) as backend:
        with backend.create(base) as sandbox:
            sandbox.run("true")
            moment = sandbox.snapshot()
            for _ in range(calls):
                ACTS[name](backend, sandbox, moment)
        time.sleep(1)  # closed sandboxes end on their own, and only then count
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def timed(call: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def spread(seconds: list[float]) -> dict[str, float]:
    """Median and spread in milliseconds."""
    taken = sorted(second * 1000 for second in seconds)
    cuts = statistics.quantiles(taken, n=10) if len(taken) > 1 else [taken[0]] * 9
    return {
        "median": round(statistics.median(taken), 1),
        "p10": round(cuts[0], 1),
        "p90": round(cuts[-1], 1),
        "least": round(taken[0], 1),
    }
