"""What forking ALFWorld costs: snapshot, restore, fork, file size, memory, and that it is exact.

    python benchmarks/fork_latency.py --out fork_latency.json            # generated houses
    python benchmarks/fork_latency.py --games-dir DATA --split valid_seen
    python benchmarks/fork_latency.py --sandbox repo                     # see repo_forks.py

Times are in microseconds: median and 10th and 90th percentile over many calls, through the whole
stack that `gymnasium.make` builds. Memory is the resident set of this process, in MiB.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym

import sandboxgym as sg
from sandboxgym.core.digest import first_difference

MIB = 2**20
DEPTHS = (0, 10, 25, 49)


def main() -> None:
    args = arguments()
    if args.sandbox == "repo":
        from benchmarks.repo_forks import repo_fork_latencies

        result = repo_fork_latencies()
    else:
        result = alfworld(args)
    text = json.dumps(result, indent=2)
    print(text)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text + "\n")


def alfworld(args: argparse.Namespace) -> dict[str, Any]:
    make = maker(args)
    return {
        "machine": {"python": platform.python_version(), "cpu": platform.machine()},
        "games": args.games_dir or f"synthetic {args.difficulty}",
        "latency": [latency(make, depth, args.calls) for depth in DEPTHS],
        "round_trips": round_trips(make, args.round_trips),
        "live_forks": live_forks(make, args.forks),
        "resets": resets(make, args.resets),
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sandbox", choices=("alfworld", "repo"), default="alfworld")
    parser.add_argument("--games-dir", help="ALFWorld's data; generated houses without it")
    parser.add_argument("--split", default="valid_seen")
    parser.add_argument("--difficulty", default="normal", help="of generated houses")
    parser.add_argument("--calls", type=int, default=2000, help="timed calls of each kind")
    parser.add_argument("--round-trips", type=int, default=10_000)
    parser.add_argument("--forks", type=int, default=1000, help="live at the same time")
    parser.add_argument("--resets", type=int, default=10_000)
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    return parser.parse_args()


def maker(args: argparse.Namespace) -> Callable[[], Any]:
    kwargs: dict[str, Any] = {"split": args.split}
    if args.games_dir:
        kwargs |= {"source": "real", "games_dir": args.games_dir}
    else:
        kwargs |= {"source": "synthetic", "difficulty": args.difficulty}
    return lambda: gym.make("sandboxgym/ALFWorld-v0", **kwargs)


def latency(make: Callable[[], Any], depth: int, calls: int) -> dict[str, Any]:
    env = make()
    dice = random.Random(depth)
    _, info = env.reset(options={"index": 0})
    for _ in range(depth):
        _, _, ended, _, info = env.step(dice.choice(info["admissible_commands"]))
        if ended:
            raise RuntimeError("the random commands won the game; choose another seed")
    moment = env.snapshot()
    recipe = moment.drop_state()
    return {
        "depth": depth,
        "snapshot_us": timed(env.snapshot, calls),
        "restore_us": timed(lambda: env.restore(moment), calls),
        "restore_verified_us": timed(lambda: env.restore(moment, verify=True), calls),
        "replay_us": timed(lambda: env.restore(recipe), max(10, calls // 20)),
        "fork_us": timed(lambda: sg.fork(env, 1), calls),
        "file_bytes": len(moment.to_bytes()),
    }


def timed(call: Callable[[], Any], calls: int) -> dict[str, float]:
    call()
    times = []
    for _ in range(calls):
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1000)
    cuts = statistics.quantiles(times, n=10)
    return {
        "median": round(statistics.median(times), 1),
        "p10": round(cuts[0], 1),
        "p90": round(cuts[-1], 1),
    }


def round_trips(make: Callable[[], Any], total: int, games: int = 20) -> dict[str, int]:
    """Random walks with a snapshot at a random step, restored elsewhere, continued on both."""
    dice = random.Random(0)
    used, origin = make(), make()
    differences = done = 0
    while done < total:
        index = done % games
        _, info = origin.reset(options={"index": index})
        walk(origin, info, dice.randrange(40), dice)
        moment = origin.snapshot()
        for _ in range(5):
            target = used if dice.random() < 0.9 else make()
            _, info = target.restore(moment)
            plan = walk(target, info, 3, dice)
            origin.restore(moment)
            again = repeat(origin, [command for command, _ in plan])
            differences += first_difference([r for _, r in plan], again) is not None
            done += 1
    return {"round_trips": done, "games": games, "differences": differences}


def walk(env: Any, info: dict[str, Any], steps: int, dice: random.Random) -> list[tuple[str, Any]]:
    taken = []
    for _ in range(steps):
        if info["won"]:
            break
        command = dice.choice(info["admissible_commands"])
        result = list(env.step(command))
        taken.append((command, result))
        info = result[-1]
        if result[2] or result[3]:
            break
    return taken


def repeat(env: Any, commands: list[str]) -> list[Any]:
    return [list(env.step(command)) for command in commands]


def live_forks(make: Callable[[], Any], n: int) -> dict[str, float]:
    env = make()
    _, info = env.reset(options={"index": 0})
    walk(env, info, 10, random.Random(1))
    before = resident()
    start = time.perf_counter()
    forks = sg.fork(env, n)
    seconds = time.perf_counter() - start
    for twin in forks:
        twin.step("look")
    return {
        "forks": n,
        "grown_mib": round((resident() - before) / MIB, 1),
        "resident_mib": round(resident() / MIB, 1),
        "forks_per_s": round(n / seconds),
    }


def resets(make: Callable[[], Any], n: int) -> dict[str, Any]:
    """Resident memory after every tenth of `n` resets over 20 games with a few steps each."""
    env = make()
    dice = random.Random(2)
    marks = []
    for i in range(n):
        _, info = env.reset(options={"index": i % 20})
        walk(env, info, 2, dice)
        if (i + 1) % max(1, n // 10) == 0:
            marks.append(round(resident() / MIB, 1))
    return {"resets": n, "resident_mib": marks}


def resident() -> int:
    gc.collect()
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmRSS")


if __name__ == "__main__":
    main()
