"""What forking a process costs: snapshot, restore, memory of many templates, overhead of a step.

    python benchmarks/process_templates.py --out process_templates.json

The environment has a heap of `--megabytes`, half Python objects, half one array; each step changes
a part of both. Times are in milliseconds, of steps in microseconds: median and 90th percentile.
Memory is in MiB: what all processes of the nursery take together (Pss, which divides shared pages
among those that share them), with one template and with many.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from sandboxgym.mechanisms.process import ProcessEnv

MIB = 2**20
BYTES_OF_AN_ENTRY = 145  # a list of an int and a string, as CPython lays it out


class Heap(gym.Env[Any, int]):
    """Has a large heap, and changes a thousandth of it in each step."""

    observation_space = gym.spaces.Discrete(2**31)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, megabytes: int, observation: int) -> None:
        half = megabytes * MIB // 2
        self.objects = [[number, str(number)] for number in range(half // BYTES_OF_AN_ENTRY)]
        self.array = np.zeros(half // 8)
        self.observation = np.zeros(observation, np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Seed the choice of what to change."""
        super().reset(seed=seed)
        return self.observation, {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Change a part."""
        part = int(self.np_random.integers(1000))
        size = len(self.array) // 1000
        self.array[part * size : (part + 1) * size] += 1
        size = len(self.objects) // 1000
        for entry in self.objects[part * size : (part + 1) * size]:
            entry[0] += 1
        return self.observation, 0.0, False, False, {"part": part}


def main() -> None:
    args = arguments()
    result = {
        "machine": {"python": platform.python_version(), "cpus": os.cpu_count()},
        "load_at_start": os.getloadavg()[0],
        "heap": heap(args.megabytes, args.templates, args.rounds),
        "steps": [steps(size, args.steps) for size in (1, 1_000, 100_000)],
        "load_at_end": os.getloadavg()[0],
    }
    text = json.dumps(result, indent=2)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=100, help="heap of the environment")
    parser.add_argument("--templates", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=50, help="timed snapshots and restores")
    parser.add_argument("--steps", type=int, default=2000, help="timed steps of each kind")
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    return parser.parse_args()


def heap(megabytes: int, templates: int, rounds: int) -> dict[str, Any]:
    make = partial(Heap, megabytes, 1)
    started = time.perf_counter()
    env = ProcessEnv(make(), make, max_templates=templates, max_memory=64 * 2**30)
    start = time.perf_counter() - started
    env.reset(seed=0)
    snapshots = [env.snapshot()]
    one = memory_of_descendants()
    taking, restoring = [], []
    for _ in range(templates - 1):
        env.step(0)
        taking.append(timed(lambda: snapshots.append(env.snapshot())))
    many = memory_of_descendants()
    dice = random.Random(0)
    for _ in range(rounds):
        snapshot = dice.choice(snapshots)
        restoring.append(timed(partial(env.restore, snapshot)))
        env.step(0)
    env.close()
    return {
        "megabytes": megabytes,
        "start_s": round(start, 2),
        "snapshot_ms": summary(taking, 1e3),
        "restore_ms": summary(restoring, 1e3),
        "replayed_steps": env.metrics.get("replayed_steps", 0),
        "memory_mib": {"templates_1": one, f"templates_{templates}": many},
        "memory_ratio": round(many / one, 2),
    }


def steps(observation: int, count: int) -> dict[str, Any]:
    make = partial(Heap, 1, observation)
    plain, forked = make(), ProcessEnv(make(), make)
    inside, outside = [], []
    for env, times in ((plain, inside), (forked, outside)):
        env.reset(seed=0)
        times.extend(timed(partial(env.step, 0)) for _ in range(count))
    forked.close()
    return {
        "observation_bytes": observation,
        "plain_us": summary(inside, 1e6),
        "process_us": summary(outside, 1e6),
    }


def timed(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def summary(times: list[float], unit: float) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "median": round(unit * statistics.median(ordered), 3),
        "p90": round(unit * ordered[int(0.9 * len(ordered))], 3),
    }


def memory_of_descendants() -> float:
    """Pss of all processes below this one, in MiB."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # another one's end
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1])
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return round(sum(pss(pid) for pid in below - {os.getpid()}) / MIB, 1)


def pss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    return 0


if __name__ == "__main__":
    main()
