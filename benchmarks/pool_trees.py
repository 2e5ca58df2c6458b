"""What a tree of rollouts costs against independent ones: one part of `throughput.py`."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import sandboxgym as sg
from benchmarks.machine import Stopwatch
from benchmarks.workloads import Workload, household, repository, shop
from sandboxgym.pool import Reset

DEPTH, MEMBERS, BRANCHES = 25, 4, (5, 10, 15, 20)
WORKLOADS = {"alfworld": household, "repo": repository, "browser": shop}


def tree(args: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """A backbone with branch points against as many independent episodes as the tree has leaves."""
    for kind in [args.env] if args.env else WORKLOADS:
        yield f"tree.{kind}", compare_tree(kind, args.rounds)


def compare_tree(kind: str, rounds: int) -> dict[str, Any]:
    leaves = 1 + len(BRANCHES) * (MEMBERS - 1)
    rounds = min(rounds, 3) if kind == "browser" else rounds  # a round of it takes most of a minute
    with tempfile.TemporaryDirectory() as folder:
        work = WORKLOADS[kind](Path(folder))
        with sg.ForkPool(work.make, leaves, workers=1) as pool:
            trees, apart = [], []
            for turn in range(rounds + 1):
                spent = timed(partial(grow, pool, work))
                alone = timed(partial(play_apart, pool, work, leaves))
                if turn > 0:
                    trees.append(spent)
                    apart.append(alone)
    steps_of_tree = DEPTH + sum((MEMBERS - 1) * (DEPTH - at) for at in BRANCHES)
    seconds = (
        [statistics.median(values) for values in zip(*trees, strict=True)],
        [statistics.median(values) for values in zip(*apart, strict=True)],
    )
    return {
        "leaves": leaves,
        "steps": [steps_of_tree, leaves * DEPTH],
        "seconds_wall": [round(part[0], 4) for part in seconds],
        "seconds_cpu": [round(part[1], 4) for part in seconds],
        "tree_over_independent_wall": round(seconds[0][0] / seconds[1][0], 3),
        "tree_over_independent_cpu": round(seconds[0][1] / seconds[1][1], 3),
        "tree_over_independent_steps": round(steps_of_tree / leaves / DEPTH, 3),
    }


def grow(pool: sg.ForkPool, work: Workload) -> None:
    root = pool.take()
    pool.reset(root, seed=0)
    lanes = [root]
    for depth in range(DEPTH):
        if depth in BRANCHES:
            lanes += pool.branch(root, MEMBERS - 1)
        pool.step({lane: work.act(pool, lane, depth) for lane in lanes})
    pool.release(*lanes)


def play_apart(pool: sg.ForkPool, work: Workload, leaves: int) -> None:
    pool.do({lane: Reset(0) for lane in range(leaves)})
    for depth in range(DEPTH):
        pool.step({lane: work.act(pool, lane, depth) for lane in range(leaves)})
    pool.release(*range(leaves))


def timed(play: partial[None]) -> tuple[float, float]:
    """Seconds on the wall and of processor time."""
    watch = Stopwatch()
    play()
    wall, own, below = watch.read()
    return wall, own + below
