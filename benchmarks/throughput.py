"""What a pool of environments costs: steps, forks, memory, trees, faults.

    python -m benchmarks.throughput --out benchmarks/results/throughput.json
    python -m benchmarks.throughput steps forks          # only these
    python -m benchmarks.throughput tree --env repo
    python -m benchmarks.throughput faults --backend ray

Rates are given by the clock on the wall, and by processor time: what the machine would do if it
had nothing else to do (`*_by_cpu`, for so many cores). Bare environments are measured by turns with
the pool, so that both see the same load. `goals` says what was reached of what is wanted.

A file that is there already keeps the parts that are not measured again; each part says of itself
on what machine and under what load it was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import sandboxgym as sg
from benchmarks.machine import Stopwatch, describe
from benchmarks.pool_faults import faults
from benchmarks.pool_memory import memory
from benchmarks.pool_trees import WORKLOADS, tree
from benchmarks.workloads import BarePlayer, make_world
from sandboxgym.pool import Restore

CORES = 2
GOALS = {
    "steps.steps_per_s_wall": (">=", 20_000),
    "steps.steps_per_s_by_cpu": (">=", 20_000),
    "steps.us_overhead": ("<=", 100),
    "forks.forks_per_s_in_one_process": (">=", 5_000),
    "memory.repo.mib": ("<=", 2048),
    "memory.browser.workers_1.mib": ("<=", 1024),
    "tree.repo.tree_over_independent_cpu": ("<=", 0.6),
    "tree.browser.tree_over_independent_cpu": ("<=", 0.6),
    "faults.local.episodes_that_differ": ("<=", 0),
    "faults.local.processes_left": ("<=", 0),
    "faults.ray.episodes_that_differ": ("<=", 0),
    "faults.ray.processes_left": ("<=", 0),
}
Parts: TypeAlias = Iterator[tuple[str, dict[str, Any]]]
"""What a benchmark measures, by name, one after the other."""


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("what", nargs="*", help=f"out of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--lanes", type=int, default=64, help="for steps")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--steps", type=int, default=10_000, help="for faults")
    parser.add_argument("--seed", type=int, default=0, help="for faults")
    parser.add_argument("--backend", choices=["local", "ray"], default="local", help="for faults")
    parser.add_argument("--env", choices=list(WORKLOADS), help="for tree and memory; default: all")
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    args = parser.parse_args()
    parts: dict[str, Any] = {}
    if args.out and args.out.exists():
        parts = json.loads(args.out.read_text())["parts"]
    for name in args.what or BENCHMARKS:
        for part, found in noted(BENCHMARKS[name](args)):
            parts[part] = found
            print(json.dumps({part: found}, indent=2), flush=True)
            if args.out:
                kept = {"goals": judged(parts), "parts": dict(sorted(parts.items()))}
                args.out.parent.mkdir(parents=True, exist_ok=True)
                args.out.write_text(json.dumps(kept, indent=2) + "\n")
    print(json.dumps({"goals": judged(parts)}, indent=2))


def noted(parts: Parts) -> Parts:
    """Each part with a note of the machine, its load and how long it took."""
    while True:
        machine, start = describe(), time.perf_counter()
        part = next(parts, None)
        if part is None:
            return
        name, found = part
        machine["load_after"] = round(os.getloadavg()[0], 2)
        machine["seconds"] = round(time.perf_counter() - start, 1)
        yield name, {**found, "machine": machine}


def judged(parts: dict[str, Any]) -> dict[str, Any]:
    """What was reached of what is wanted, for what was measured."""
    found = {}
    for path, (sign, goal) in GOALS.items():
        part, _, figure = path.rpartition(".")
        if part in parts:
            value = parts[part][figure]
            reached = value >= goal if sign == ">=" else value <= goal
            found[path] = {"goal": f"{sign} {goal}", "measured": value, "reached": reached}
    return found


def steps(args: argparse.Namespace) -> Parts:
    """Random commands in many lanes, through the vector front; and in one bare environment."""
    lanes, turns = args.lanes, 60
    envs = sg.ForkableVectorEnv(
        make_world, lanes, autoreset_mode="NextStep", workers=CORES, time_limit=None
    )
    bare = BarePlayer([make_world()])
    dice = random.Random(0)
    infos = envs.reset(seed=0)[1]
    wall, pool_cpu, owner_cpu, bare_cpu = [], [], [], []
    for turn in range(args.rounds + 3):
        watch = Stopwatch()
        for _ in range(turns):
            actions = tuple(dice.choice(commands) for commands in infos["admissible_commands"])
            *_, infos = envs.step(actions)
        spent, own, below = watch.read()
        alone = bare.play(turns * lanes // 8)
        if turn >= 3:  # games and memories are warm by then
            wall.append(turns * lanes / spent)
            pool_cpu.append((own + below) / turns / lanes * 1e6)
            owner_cpu.append(own / turns / lanes * 1e6)
            bare_cpu.append(alone * 1e6)
    envs.close()
    whole, alone = statistics.median(pool_cpu), statistics.median(bare_cpu)
    yield (
        "steps",
        {
            "lanes": lanes,
            "steps_per_s_wall": round(statistics.median(wall)),
            "steps_per_s_by_cpu": round(CORES * 1e6 / whole),
            "us_per_step": round(whole, 1),
            "us_per_step_of_owner": round(statistics.median(owner_cpu), 1),
            "us_per_step_bare": round(alone, 1),
            "us_overhead": round(
                statistics.median(a - b for a, b in zip(pool_cpu, bare_cpu, strict=True)), 1
            ),
        },
    )


def forks(args: argparse.Namespace) -> Parts:
    """Restores of one moment in many lanes: in this process, and in a pool with one worker."""
    env = make_world()
    env.reset(seed=0)
    for _ in range(20):
        env.step("look")
    moment = env.snapshot()
    others = env.fork(32)
    here, pooled, wall, takes = [], [], [], []
    with sg.ForkPool(make_world, 33, workers=1, time_limit=None) as pool:
        pool.reset(0, seed=0)
        for _ in range(20):
            pool.step({0: "look"})
        handle = pool.snapshot(0)
        for turn in range(args.rounds + 2):
            begun = time.process_time()
            for _ in range(20):
                for other in others:
                    other.restore(moment)
            here.append((time.process_time() - begun) / 20 / 32)
            begun = time.process_time()
            for _ in range(200):
                env.snapshot()
            takes.append((time.process_time() - begun) / 200)
            watch = Stopwatch()
            for _ in range(20):
                pool.do({lane: Restore(handle) for lane in range(1, 33)})
            spent, own, below = watch.read()
            wall.append(20 * 32 / spent)
            pooled.append((own + below) / 20 / 32)
            if turn < 2:
                here, pooled, wall, takes = [], [], [], []
    yield (
        "forks",
        {
            "forks_per_s_in_one_process": round(1 / statistics.median(here)),
            "forks_per_s_of_a_pool_by_cpu": round(1 / statistics.median(pooled)),
            "forks_per_s_of_a_pool_wall": round(statistics.median(wall)),
            "us_snapshot": round(statistics.median(takes) * 1e6, 1),
        },
    )


BENCHMARKS: dict[str, Callable[[argparse.Namespace], Parts]] = {
    "steps": steps,
    "forks": forks,
    "memory": memory,
    "tree": tree,
    "faults": faults,
}

if __name__ == "__main__":
    main()
