"""What a store of snapshots costs, against a file for each of them.

    python benchmarks/store.py --out store.json                          # generated houses
    python benchmarks/store.py --games-dir DATA --split valid_seen
    python benchmarks/store.py --env ALE/Breakout-v5 --import ale_py     # any Gymnasium environment

Takes a snapshot after each step of one episode (with a random policy; where it ends, the episode is
continued from a snapshot drawn from the last 50). Bytes are those of the file system (`du`). Times
are in microseconds, median and 10th and 90th percentile; `put` includes the sync to disk.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym

import sandboxgym as sg
from sandboxgym.core.digest import first_difference

SEED = 7


def main() -> None:
    args = arguments()
    moments = episode(args)
    args.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.scratch) as scratch:
        result = {
            "machine": {"python": platform.python_version(), "cpu": platform.machine()},
            "environment": moments[0].spec.id,
            "snapshots": len(moments),
            "files": files(moments, Path(scratch) / "files"),
            "store": store(moments, Path(scratch) / "store"),
            "memory": in_memory(moments),
        }
    text = json.dumps(result, indent=2)
    print(text)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--env", default="sandboxgym/ALFWorld-v0")
    parser.add_argument("--import", dest="module", help="import this first")
    parser.add_argument("--games-dir", help="ALFWorld's data; generated houses without it")
    parser.add_argument("--split", default="valid_seen")
    parser.add_argument("--snapshots", type=int, default=1000)
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    return parser.parse_args()


def make(args: argparse.Namespace) -> Any:
    if args.module:
        importlib.import_module(args.module)
    if args.env != "sandboxgym/ALFWorld-v0":
        return sg.forkable(gym.make(args.env))
    kwargs: dict[str, Any] = {"source": "synthetic", "split": args.split}
    if args.games_dir:
        kwargs |= {"source": "real", "games_dir": args.games_dir}
    return gym.make(args.env, max_episode_steps=2 * args.snapshots, **kwargs)


def episode(args: argparse.Namespace) -> list[sg.Snapshot]:
    env = make(args)
    dice = random.Random(SEED)
    _, info = env.reset(seed=SEED)
    env.action_space.seed(SEED)
    moments = [sg.snapshot(env)]
    while len(moments) < args.snapshots:
        commands = info.get("admissible_commands")
        action = dice.choice(commands) if commands else env.action_space.sample()
        *_, ended, cut, info = env.step(action)
        if ended or cut:
            _, info = sg.restore(env, dice.choice(moments[-50:]))
        else:
            moments.append(sg.snapshot(env))
    env.close()
    return moments


def files(moments: list[sg.Snapshot], folder: Path) -> dict[str, Any]:
    folder.mkdir()
    return {
        "put_us": timed([lambda m=m, i=i: m.save(folder / str(i)) for i, m in enumerate(moments)]),
        "get_us": timed(
            [lambda i=i: sg.Snapshot.load(folder / str(i)) for i in range(len(moments))]
        ),
        **size(folder, len(moments)),
        "content_bytes": sum(path.stat().st_size for path in folder.iterdir()),
    }


def store(moments: list[sg.Snapshot], folder: Path) -> dict[str, Any]:
    kept = sg.SnapshotStore(folder)
    result: dict[str, Any] = {"put_us": timed([lambda m=m: kept.put(m) for m in moments])}
    keys = [kept.put(moment) for moment in moments]
    started = time.perf_counter()
    cold = sg.SnapshotStore(folder)
    result["open_ms"] = round((time.perf_counter() - started) * 1000, 2)
    result["put_again_us"] = timed([lambda m=m: kept.put(m) for m in moments])
    result["get_us"] = timed([lambda k=k: kept.get(k) for k in keys])
    anyhow = random.Random(0).sample(keys, len(keys))
    result["get_cold_us"] = timed([lambda k=k: cold.get(k) for k in anyhow])
    started = time.perf_counter()
    result["faults"] = len(cold.verify())
    result["verify_ms"] = round((time.perf_counter() - started) * 1000, 1)
    result["differences"] = differences(cold, keys, moments)
    return result | size(folder, len(moments))


def in_memory(moments: list[sg.Snapshot]) -> dict[str, Any]:
    kept = sg.SnapshotStore()
    result: dict[str, Any] = {"put_us": timed([lambda m=m: kept.put(m) for m in moments])}
    keys = [kept.put(moment) for moment in moments]
    result["get_us"] = timed([lambda k=k: kept.get(k) for k in keys])
    result["differences"] = differences(kept, keys, moments)
    return result | {"bytes": kept.size}


def differences(kept: sg.SnapshotStore, keys: list[str], moments: list[sg.Snapshot]) -> int:
    return sum(
        first_difference(kept.get(key).as_tree(), moment.as_tree()) is not None
        for key, moment in zip(keys, moments, strict=True)
    )


def size(folder: Path, n: int) -> dict[str, Any]:
    du = subprocess.run(["du", "-sB1", folder], capture_output=True, text=True, check=True)
    used = int(du.stdout.split()[0])
    return {"bytes": used, "bytes_per_snapshot": round(used / n)}


def timed(calls: list[Callable[[], Any]]) -> dict[str, float]:
    times = []
    for call in calls:
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1000)
    cuts = statistics.quantiles(times, n=10)
    return {
        "median": round(statistics.median(times), 1),
        "p10": round(cuts[0], 1),
        "p90": round(cuts[-1], 1),
    }


if __name__ == "__main__":
    main()
