"""What live forks take in memory: one part of `throughput.py`."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sandboxgym as sg
from benchmarks.machine import below
from benchmarks.workloads import press, repository, shop
from sandboxgym.conformance import processes


def memory(args: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """64 live forks of a repository, and 16 of a browser, each with something of its own."""
    if args.env in (None, "repo"):
        yield "memory.repo", repositories()
    if args.env in (None, "browser"):
        for workers in (1, 2):
            yield f"memory.browser.workers_{workers}", browsers(workers)


def repositories() -> dict[str, Any]:
    """Each with a shell and a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        work = repository(Path(folder))
        with sg.ForkPool(work.make, 64, workers=4) as pool:
            pool.reset(0, seed=0)
            pool.step({0: "export WHO=root; python3 -m py_compile *.py"})
            start = time.perf_counter()
            lanes = [0, *pool.branch(0, 63)]
            spent = time.perf_counter() - start
            results = pool.step({lane: f"echo $WHO {lane} > own; cat own" for lane in lanes})
            right = sum(result[0]["output"] == f"root {lane}\n" for lane, result in results.items())
            return {**taken(lanes, spent), "right": right}


def browsers(workers: int) -> dict[str, Any]:
    """Each ten clicks deep in a shop, and three more of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        sg.ForkPool(shop(Path(folder)).make, 16, workers=workers) as pool,
    ):
        pool.reset(0, seed=0)
        for depth in range(10):
            pool.step({0: press(pool, 0, depth)})
        start = time.perf_counter()
        lanes = [0, *pool.branch(0, 15)]
        spent = time.perf_counter() - start
        for depth in range(3):
            pool.step({lane: press(pool, lane, depth) for lane in lanes})
        return taken(lanes, spent)


def taken(lanes: list[int], spent: float) -> dict[str, Any]:
    """Memory of all processes below this one, what they share counted once."""
    pids = below()
    return {
        "live_forks": len(lanes),
        "seconds_to_branch": round(spent, 2),
        "processes": len(pids),
        "mib": round(processes.memory(pids) / 2**20),
    }
