"""Workers that are killed at random moments: one part of `throughput.py`."""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym

import sandboxgym as sg
from benchmarks.machine import below
from sandboxgym.pool import Reset, Step


def faults(args: argparse.Namespace) -> dict[str, Any]:
    """Episodes with and without kills of workers at random moments; they have to be equal."""
    before = below()
    make = partial(
        gym.make, "sandboxgym/ALFWorld-v0", source="synthetic", difficulty="easy", num_games=2
    )
    with sg.ForkPool(make, 8, workers=2, patience=20) as pool:
        start = time.perf_counter()
        undisturbed = play(pool, args.steps, args.seed, lambda share: None)
        calm = time.perf_counter() - start
        killer = Killer(pool, args.kills, args.seed)
        start = time.perf_counter()
        disturbed = play(pool, args.steps, args.seed, killer.act)
        stormy = time.perf_counter() - start
        restarts = len(pool.take_restarts())
        left_inside = len(below() - before)
    different = sum(a != b for a, b in zip(undisturbed, disturbed, strict=True))
    deadline = time.monotonic() + 30
    while (left := below() - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    return {
        "steps": args.steps,
        "kills": killer.done,
        "episodes": len(undisturbed),
        "episodes_that_differ": different,
        "lanes_rebuilt": restarts,
        "seconds": [round(calm, 2), round(stormy, 2)],
        "processes_with_two_workers": left_inside,
        "processes_left": len(left),
    }


class Killer:
    """Kills workers at random moments, so many over all steps."""

    def __init__(self, pool: sg.ForkPool, kills: int, seed: int) -> None:
        self.pool, self.kills, self.done = pool, kills, 0
        self.dice = random.Random(seed)

    def act(self, share: float) -> None:
        """Kill while fewer were killed than belong to this share of all steps."""
        while self.done < self.kills * share:
            where = self.pool.where(self.dice.choice(self.pool.lanes))
            subprocess.run(["sleep", f"{self.dice.random() * 0.01:.4f}"], check=True)
            if where is None:
                return  # it is being replaced: another one, next time
            os.kill(where.pid, signal.SIGKILL)
            self.done += 1


def play(pool: sg.ForkPool, steps: int, seed: int, disturb: Callable[[float], None]) -> list[Any]:
    """Play whole episodes in all lanes, for so many steps; what each of them showed."""
    episodes: list[Any] = []
    taken = 0
    while taken < steps:
        first = seed * 10_000 + len(episodes)
        results = pool.do({lane: Reset(first + lane) for lane in pool.lanes})
        shown = {lane: [result] for lane, result in results.items()}
        infos = {lane: info for lane, (_, info) in results.items()}
        dice = {lane: random.Random(first + lane) for lane in pool.lanes}
        while infos:
            pool.send(
                {
                    lane: Step(dice[lane].choice(info["admissible_commands"]))
                    for lane, info in infos.items()
                }
            )
            taken += len(infos)
            disturb(min(1.0, taken / steps))
            for lane, result in pool.wait(list(infos)).items():
                shown[lane].append(result)
                infos[lane] = result[4]
                if result[2] or result[3]:
                    del infos[lane]
        episodes += shown.values()
    return episodes
