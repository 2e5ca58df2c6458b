"""How many steps a second a pool makes, predicted for sizes that no machine here has.

    python -m benchmarks.scale --out benchmarks/results/scale.json
    python -m benchmarks.scale --backend ray --out benchmarks/results/scale.json  # beside the other

Three parts. The costs of single things are measured on this machine: a step, a restore, a message
and so on. What they predict is compared with pools that are run, of 1 to 16 lanes, at sizes that
the costs were not taken from. And a simulation plays rounds of pools of 1,000 to 100,000 lanes with
these costs.

All that is measured is processor time, with the bare environment measured by turns with the pool,
because a machine that has much else to do spends several times the processor time on the same
work. Costs and measurements are given as the same multiple of a step of the bare environment, whose
time on an idle machine can be given (`--bare-us`).
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import sandboxgym as sg
from benchmarks.machine import Stopwatch, describe
from benchmarks.workloads import BarePlayer
from sandboxgym.pool import Reset, Restore, Step, Take
from sandboxgym.pool.messages import Command

LANES = (1, 2, 4, 8, 16)
make_world = partial(
    gym.make, "sandboxgym/ALFWorld-v0", source="synthetic", split="valid_seen", num_games=4
)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--backend", choices=["local", "ray"], default="local")
    parser.add_argument("--turns", type=int, default=9, help="of measurements; medians are taken")
    parser.add_argument(
        "--bare-us", type=float, default=36.0, help="a step where nothing else runs"
    )
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    args = parser.parse_args()
    result: dict[str, Any] = {"machine": describe()}
    with sg.ForkPool(make_world, 16, workers=1, backend=args.backend, time_limit=None) as pool:
        measured = Measurements(pool, args.turns)
    with sg.ForkPool(make_world, 16, workers=2, backend=args.backend, time_limit=None) as pool:
        measured.of_two_workers(pool)
        costs = measured.costs()
        result["us_per_step_bare_here"] = round(measured.bare * 1e6, 1)
        result["checks"] = [*measured.checks(costs), check_of_rollouts(pool, costs, measured)]
    costs = costs.scaled(args.bare_us / 1e6 / measured.bare)
    result["costs_us"] = {name: round(value * 1e6, 2) for name, value in asdict(costs).items()}
    result["predictions"] = predictions(costs)
    print(json.dumps(result, indent=2))
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        known = json.loads(args.out.read_text()) if args.out.exists() else {}
        args.out.write_text(json.dumps({**known, args.backend: result}, indent=2) + "\n")


# --- The model -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Costs:
    """Seconds of processor time, each for one of what it is named after."""

    owner_message: float
    """A message to a worker, and the one that answers it: the owner's part."""
    owner_command: float
    """What the owner does for each lane in it."""
    message: float
    """The worker's part of a message."""
    step: float
    """The worker's part of a step, a reset now and then included."""
    restore: float
    take: float
    owner_transfer: float
    """The owner's part of a snapshot's way to another worker."""
    transfer: float
    """The workers' part of that."""

    def scaled(self, factor: float) -> Costs:
        """The same on a machine of another speed."""
        return Costs(**{name: value * factor for name, value in asdict(self).items()})


@dataclass(frozen=True)
class Plan:
    """What is run.

    Attributes:
        lanes: All environments.
        workers: All workers, each with a core of its own.
        owners: Pools that the lanes are divided among, each with an owner on a core of its own.
        length: Mean steps of a rollout.
        cap: Steps at which it ends in any case.
        near: Share of the rollouts that begin at a snapshot which their worker holds.
        latency: Seconds for a message to arrive.
        bandwidth: Bytes a second between an owner and all its workers.
        snapshot: Bytes.
        spread: Of the time of a step, as a share of its mean (log-normal).
        policy: Seconds between two rounds in which actions are chosen.
    """

    lanes: int
    workers: int
    owners: int = 1
    length: float = 25.0
    cap: int = 50
    near: float = 0.75
    latency: float = 100e-6
    bandwidth: float = 1.25e9
    snapshot: int = 20_000
    spread: float = 1.0
    policy: float = 0.0


def simulate(costs: Costs, plan: Plan, rounds: int = 100, seed: int = 0) -> dict[str, Any]:
    """Play rounds of one owner: each lane takes a step, or begins the next rollout.

    The owner writes its messages one after the other; each worker does what its lanes have to do,
    and answers; the owner reads the answers as they come, one after the other.
    """
    dice = np.random.default_rng(seed)
    lanes, workers = plan.lanes // plan.owners, max(1, plan.workers // plan.owners)
    worker_of = np.arange(lanes) * workers // lanes
    held = np.bincount(worker_of, minlength=workers)
    left = drawn_lengths(dice, plan, lanes)
    sigma = np.sqrt(np.log1p(plan.spread**2))
    clock, owner_busy, worker_busy, steps = 0.0, 0.0, 0.0, 0
    half = 0.5 * (costs.owner_message + costs.owner_command * held)
    for _ in range(rounds):
        begins = left == 0
        far = begins & (dice.random(lanes) > plan.near)
        left = np.where(begins, drawn_lengths(dice, plan, lanes), left - 1)
        work = costs.step * dice.lognormal(-(sigma**2) / 2, sigma, lanes)
        work[begins] = costs.restore
        work[far] += costs.transfer
        done = np.bincount(worker_of, work, minlength=workers) + costs.message
        moved = np.bincount(worker_of[far], minlength=workers)
        sent = half + moved * costs.owner_transfer
        written = np.cumsum(np.maximum(sent, moved * plan.snapshot / plan.bandwidth))
        arrived = written + done + 2 * plan.latency
        clock += in_turn(written[-1], arrived, half) + plan.policy
        owner_busy += sent.sum() + half.sum()
        worker_busy += done.sum()
        steps += int((~begins).sum())
    return {
        "lanes": plan.lanes,
        "workers": plan.workers,
        "owners": plan.owners,
        "steps_per_s": round(plan.owners * steps / clock),
        "owner_busy": round(float(owner_busy / clock), 2),
        "workers_busy": round(float(worker_busy / workers / clock), 2),
        "ms_per_round": round(float(clock / rounds) * 1e3, 2),
    }


def drawn_lengths(dice: np.random.Generator, plan: Plan, count: int) -> NDArray[np.int64]:
    """Lengths of rollouts: geometric, up to the cap."""
    return np.minimum(dice.geometric(1 / plan.length, count), plan.cap)


def in_turn(start: float, arrived: NDArray[np.float64], costs: NDArray[np.float64]) -> float:
    """When one who starts then has read all that arrives, one after the other as it comes."""
    order = np.argsort(arrived)
    spent = np.cumsum(costs[order])
    waited = np.maximum(arrived[order], start) - (spent - costs[order])
    return float(waited.max() + spent[-1])


def predictions(costs: Costs) -> list[dict[str, Any]]:
    """Pools of 1,000 to 100,000 lanes, with one owner and with one for each 1,000 lanes."""
    plans = [
        Plan(lanes, lanes // share, owners)
        for lanes in (1_000, 10_000, 100_000)
        for share in (250, 50, 10)
        for owners in sorted({1, lanes // 1_000})
    ]
    some = Plan(10_000, 200, 10)
    plans += [replace(some, near=1.0), replace(some, near=0.0), replace(some, policy=1.0)]
    slow = replace(costs, step=10e-3, restore=30e-3)  # about those of a repository
    return [row(costs, plan) for plan in plans] + [
        row(slow, Plan(lanes, lanes // 10, owners))
        for lanes in (1_000, 10_000, 100_000)
        for owners in sorted({1, lanes // 10_000 or 1})
    ]


def row(costs: Costs, plan: Plan) -> dict[str, Any]:
    """What a plan comes to, and what is special about it."""
    special = {"step_ms": costs.step * 1e3, "near": plan.near, "policy_s": plan.policy}
    return {**simulate(costs, plan), **{name: round(x, 3) for name, x in special.items()}}


# --- Costs of this machine -----------------------------------------------------------------------


class Measurements:
    """What things cost in a pool of one worker with 16 lanes, in turns with a bare environment."""

    def __init__(self, pool: sg.ForkPool, turns: int) -> None:
        self.turns = turns
        bare = [make_world() for _ in LANES]
        self.bare = 0.0
        play = Player(pool)
        kinds: dict[Any, Callable[[], None]] = {n: partial(play.steps, n) for n in LANES}
        kinds |= {"take": play.take, "restore": play.restore}
        self.found = self._by_turns(kinds, BarePlayer(bare))

    def of_two_workers(self, pool: sg.ForkPool) -> None:
        """What needs two workers: a snapshot that goes to the other, and messages to both."""
        play = Player(pool)
        kinds: dict[Any, Callable[[], None]] = {
            "two workers": partial(play.steps, 16),
            "transfer": play.transfer,
        }
        self.found |= self._by_turns(kinds, BarePlayer([make_world()]))

    def _by_turns(
        self, kinds: dict[Any, Callable[[], None]], bare: BarePlayer
    ) -> dict[Any, tuple[float, float]]:
        """Median seconds of one call of each kind: of the owner, and of all below it.

        Each turn is put on the scale of the bare environment's median.
        """
        taken: dict[Any, list[tuple[float, float]]] = {kind: [] for kind in kinds}
        alone = []
        for turn in range(self.turns + 2):
            for kind, play in kinds.items():
                unit = bare.play(60)
                watch, calls = Stopwatch(), 12
                for _ in range(calls):
                    play()
                _, own, below = watch.read()
                unit = (unit + bare.play(60)) / 2
                if turn >= 2:  # games and memories are warm by then
                    taken[kind].append((own / calls / unit, below / calls / unit))
                    alone.append(unit)
        self.bare = self.bare or statistics.median(alone)
        return {
            kind: (
                statistics.median(own for own, _ in pairs) * self.bare,
                statistics.median(below for _, below in pairs) * self.bare,
            )
            for kind, pairs in taken.items()
        }

    def costs(self) -> Costs:
        """Costs of single things, from the smallest pool and the largest."""
        (own_1, below_1), (own_16, below_16) = self.found[1], self.found[16]
        command, step = (own_16 - own_1) / 15, (below_16 - below_1) / 15
        own_message, message = own_1 - command, below_1 - step
        restore = (self.found["restore"][1] - message) / 16
        take = (self.found["take"][1] - message) / 16
        own, below = self.found["transfer"]
        return Costs(
            owner_message=own_message,
            owner_command=command,
            message=message,
            step=step,
            restore=restore,
            take=take,
            owner_transfer=own - 2 * (own_message + command),
            transfer=below - 2 * message - take - restore,
        )

    def checks(self, costs: Costs) -> list[dict[str, Any]]:
        """What the costs say of pools that they were not taken from, and what those took."""
        sizes = [(n, 1, self.found[n]) for n in LANES[1:-1]]
        sizes.append((16, 2, self.found["two workers"]))
        rows = []
        for lanes, workers, (own, below) in sizes:
            count = Counter(messages=workers, step=lanes)
            rows.append({"lanes": lanes, "workers": workers, **compare(count, costs, own, below)})
        return rows


def compare(count: Counter[str], costs: Costs, own: float, below: float) -> dict[str, Any]:
    """Milliseconds predicted for so many things, and measured: of the owner, and of all others."""
    done = ("step", "restore", "take")
    commands = sum(count[name] for name in done)
    owner = (
        count["messages"] * costs.owner_message
        + commands * costs.owner_command
        + count["transfer"] * costs.owner_transfer
    )
    others = count["messages"] * costs.message + count["transfer"] * costs.transfer
    others += sum(count[name] * getattr(costs, name) for name in done)
    return {
        "predicted_ms": [round(owner * 1e3, 3), round(others * 1e3, 3)],
        "measured_ms": [round(own * 1e3, 3), round(below * 1e3, 3)],
        "predicted_over_measured": round((owner + others) / (own + below), 3),
    }


def check_of_rollouts(pool: sg.ForkPool, costs: Costs, measured: Measurements) -> dict[str, Any]:
    """Rollouts from snapshots that are near and far, in 16 lanes of two workers."""
    bare, play = BarePlayer([make_world()]), Player(pool)
    ratios: list[tuple[float, float]] = []
    counts: list[Counter[str]] = []
    for turn in range(measured.turns + 1):
        unit, watch = bare.play(100), Stopwatch()
        count = play.rollouts(rounds=40, seed=turn)
        _, own, below = watch.read()
        unit = (unit + bare.play(100)) / 2 / measured.bare
        if turn:
            ratios.append((own / unit, below / unit))
            counts.append(count)
    total = sum(counts, Counter())
    own, below = (sum(values) for values in zip(*ratios, strict=True))
    return {"lanes": 16, "workers": 2, "rollouts": dict(total), **compare(total, costs, own, below)}


class Player:
    """Random commands in the lanes of a pool."""

    def __init__(self, pool: sg.ForkPool) -> None:
        self.pool = pool
        self.dice = random.Random(0)
        pool.do({lane: Reset(lane) for lane in pool.lanes})
        self.root = pool.snapshot(0)
        pool.do({lane: Restore(self.root) for lane in pool.lanes})  # all workers hold it
        for _ in range(150):  # until the workers have read all games
            self.steps(len(pool.lanes))

    def steps(self, lanes: int) -> None:
        """A step in each of some lanes."""
        self.pool.do({lane: self.next_of(lane) for lane in range(lanes)})

    def next_of(self, lane: int) -> Command:
        """A random command; a reset where the episode is over."""
        _, _, terminated, truncated, info = self.pool.last(lane)  # type: ignore[misc]  # was reset
        if terminated or truncated:
            return Reset(self.dice.randrange(100))
        return Step(self.dice.choice(info["admissible_commands"]))

    def take(self) -> None:
        """A snapshot of each lane."""
        self.pool.do({lane: Take() for lane in self.pool.lanes})

    def restore(self) -> None:
        """A restore of what its worker holds, in each lane."""
        self.pool.do({lane: Restore(self.root) for lane in self.pool.lanes})

    def transfer(self) -> None:
        """A snapshot that is taken by one worker and restored in the other."""
        self.pool.restore(len(self.pool.lanes) - 1, self.pool.snapshot(0))

    def rollouts(self, rounds: int, seed: int) -> Counter[str]:
        """Rollouts of random lengths in all lanes; how much of what that was."""
        dice, lanes = random.Random(seed), list(self.pool.lanes)
        left = dict.fromkeys(lanes, 0)
        count: Counter[str] = Counter()
        for _ in range(rounds):
            commands: dict[int, Command] = {}
            ended = [lane for lane in lanes if left[lane] == 0]
            moment = self.root
            if any(lane >= len(lanes) // 2 for lane in ended):
                moment = self.pool.snapshot(0)
                count += Counter(take=1, messages=1)
            for lane in lanes:
                if lane in ended:
                    commands[lane] = Restore(moment)
                    left[lane] = min(30, 1 + int(dice.expovariate(1 / 10)))
                else:
                    commands[lane] = self.next_of(lane)
                    left[lane] -= 1
            far = moment is not self.root  # one of those that it is for is in the other worker
            self.pool.do(commands)
            count += Counter(
                messages=2, restore=len(ended), step=len(lanes) - len(ended), transfer=far
            )
        return count


if __name__ == "__main__":
    main()
