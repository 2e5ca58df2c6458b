"""Workers, and a node of a cluster, killed at random moments: a part of `throughput.py`."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym

import sandboxgym as sg
from benchmarks.machine import below
from sandboxgym.pool import Reset, Restore, Step, Take
from sandboxgym.pool.messages import Command

LANES = 8
FAMILY, FORKED_AT = 4, 6  # four lanes go on from the sixth step of one of them
Disturb = Callable[[float], None]


def faults(args: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Episodes with and without kills at random moments; they have to be equal."""
    storm = faults_of_cluster if args.backend == "ray" else faults_of_machine
    yield f"faults.{args.backend}", storm(args)


def faults_of_machine(args: argparse.Namespace) -> dict[str, Any]:
    """Two workers of the local backend; what is killed is one of them."""
    before = below()
    with sg.ForkPool(household, LANES, workers=2, patience=20) as pool:
        killer = Killer(pool, args.kills, args.seed, lambda worker: [worker])
        found = compare(pool, args, killer)
        found["processes_with_two_workers"] = len(below() - before)
    return {**found, "processes_left": count_left(lambda: below() - before)}


def faults_of_cluster(args: argparse.Namespace) -> dict[str, Any]:
    """Six workers on three nodes of a Ray cluster on this machine.

    What is killed is a worker, its keeper or its actor; and, half way, one of the nodes.
    """
    from benchmarks.pool_cluster import Nodes, chain
    from sandboxgym.pool.ray import RayBackend

    with Nodes(3) as nodes:
        backend = RayBackend(num_cpus=0)
        with sg.ForkPool(household, LANES, workers=6, patience=20, backend=backend) as pool:
            killer = Killer(pool, args.kills, args.seed, chain)
            lost: list[str] = []

            def disturb(share: float) -> None:
                if share > 0.5 and not lost:
                    lost.append(nodes.kill_one(pool))
                killer.act(share)

            found = compare(pool, args, killer, disturb)
        found["nodes_killed"] = len(lost)
        return {**found, "processes_left": count_left(nodes.of_pools)}


def household() -> gym.Env[str, str]:
    """A household with few games, which each worker has soon read."""
    return gym.make(  # type: ignore[no-any-return]
        "sandboxgym/ALFWorld-v0", source="synthetic", difficulty="easy", num_games=2
    )


def compare(
    pool: sg.ForkPool, args: argparse.Namespace, killer: Killer, disturb: Disturb | None = None
) -> dict[str, Any]:
    """Play undisturbed and disturbed (by the killer alone where nothing else is given)."""
    start = time.perf_counter()
    undisturbed = play(pool, args.steps, args.seed, lambda share: None)
    calm = time.perf_counter() - start
    start = time.perf_counter()
    disturbed = play(pool, args.steps, args.seed, disturb or killer.act)
    stormy = time.perf_counter() - start
    return {
        "steps": sum(len(episode) for episode in disturbed),
        "kills": killer.done,
        "episodes": len(undisturbed),
        "episodes_that_differ": sum(a != b for a, b in zip(undisturbed, disturbed, strict=True)),
        "lanes_rebuilt": len(pool.take_restarts()),
        "seconds": [round(calm, 2), round(stormy, 2)],
    }


class Killer:
    """Kills processes at random moments, so many over all steps.

    Args:
        pool: Its workers are killed.
        kills: How many times, in all.
        seed: Of the dice.
        victims: Which processes may be killed instead of a worker, by the worker's id.
    """

    def __init__(
        self, pool: sg.ForkPool, kills: int, seed: int, victims: Callable[[int], list[int]]
    ) -> None:
        self.pool, self.kills, self.victims, self.done = pool, kills, victims, 0
        self.dice = random.Random(seed)

    def act(self, share: float) -> None:
        """Kill while fewer were killed than belong to this share of all steps."""
        while self.done < int(self.kills * share):
            where = self.pool.where(self.dice.choice(self.pool.lanes))
            time.sleep(self.dice.random() * 0.01)
            victims = [] if where is None else self.victims(where.pid)
            if not victims:
                return  # it is being replaced: another one, next time
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.dice.choice(victims), signal.SIGKILL)
                self.done += 1


def play(pool: sg.ForkPool, steps: int, seed: int, disturb: Disturb) -> list[list[Any]]:
    """Play whole episodes, each forked into a family of lanes, until so many steps are taken.

    Args:
        pool: With a number of lanes that families divide.
        steps: How many.
        seed: What decides on resets and actions.
        disturb: Is called while the pool is at work, with the share of the work that is done.

    Returns:
        What each episode showed.
    """
    episodes: list[list[Any]] = []
    done = taken = 0

    def act(commands: dict[int, Command]) -> dict[int, Any]:
        nonlocal done
        pool.send(commands)
        done += len(commands)
        disturb(min(1.0, done / steps))
        return pool.wait(commands)

    while taken < steps:
        first = seed * 10_000 + len(episodes)
        began = act({lane: Reset(first + lane) for lane in pool.lanes[::FAMILY]})
        infos = {lane: info for lane, (_, info) in began.items()}
        shown: dict[int, list[Any]] = {lane: [] for lane in pool.lanes}
        dice = {lane: random.Random(first + lane) for lane in pool.lanes}
        for depth in itertools.count(1):
            results = act(
                {
                    lane: Step(dice[lane].choice(info["admissible_commands"]))
                    for lane, info in infos.items()
                }
            )
            taken += len(results)
            for lane, result in results.items():
                shown[lane].append(result)
                infos[lane] = result[4]
                if result[2] or result[3]:
                    del infos[lane]
            if not infos:
                break
            if depth == FORKED_AT:
                moments = act({lane: Take() for lane in infos})
                members = {
                    lane + i: moment for lane, moment in moments.items() for i in range(1, FAMILY)
                }
                forks = act({lane: Restore(moment) for lane, moment in members.items()})
                infos |= {lane: info for lane, (_, info) in forks.items()}
        episodes += shown.values()
    return episodes


def count_left(processes: Callable[[], set[int]]) -> int:
    """How many of these processes are left after half a minute at most."""
    deadline = time.monotonic() + 30
    while (left := processes()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return len(left)
