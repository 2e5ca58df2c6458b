"""What a step, a snapshot and a restore of WebShop cost, and how long loading takes.

    python -m benchmarks.webshop_steps --out benchmarks/results/webshop_steps.json

Plays random episodes on the generated catalogue of 1,000 products, or on the original's files with
`--catalogue`. Times are medians in milliseconds; each is taken on the environment alone ("bare")
and on what `gymnasium.make` returns ("wrapped": a time limit, Gymnasium's checks, and the wrapper
with `snapshot` and `restore`). `original_step_ms` is what a step of the original's text mode took,
with spaCy and Lucene, when it was measured for the specification.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import msgspec

import sandboxgym as sg
from sandboxgym.sandboxes.webshop.env import WebShopEnv

ORIGINAL_STEP_MS = 66.0
LOADING = """
import json, sys, time
begin = time.perf_counter()
import gymnasium, sandboxgym
imported = time.perf_counter()
env = gymnasium.make("sandboxgym/WebShop-v0", **json.loads(sys.argv[1]))
env.reset(seed=0)
ready = time.perf_counter()
print(json.dumps({"import_s": imported - begin, "make_and_reset_s": ready - imported}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--catalogue", help="files of the original; generated products without")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    options = parser.parse_args()
    kwargs: dict[str, Any] = {"split": "all"}
    if options.catalogue:
        kwargs["catalogue"] = options.catalogue
    bare, wrapped = WebShopEnv(**kwargs), gym.make("sandboxgym/WebShop-v0", **kwargs)
    result = {
        "machine": {
            "python": platform.python_version(),
            "cpu": platform.machine(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
        },
        "catalogue": "original" if options.catalogue else "generated",
        "loading_in_a_new_process": loading(kwargs),
        "original_step_ms": ORIGINAL_STEP_MS,
        "bare": measured(bare, options.steps),
        "wrapped": measured(wrapped, options.steps),
        "state_bytes": len(msgspec.msgpack.encode(bare.get_state())),
    }
    print(json.dumps(result, indent=2))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")


def loading(kwargs: dict[str, Any]) -> dict[str, float]:
    command = [sys.executable, "-c", LOADING, json.dumps(kwargs)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {name: round(value, 3) for name, value in json.loads(output).items()}


def measured(env: Any, steps: int) -> dict[str, Any]:
    times = walked(env, steps)
    everything = sorted(time for part in times.values() for time in part)
    env.reset(seed=1)
    moment = halfway(env)
    return {
        "step_ms": milliseconds(statistics.median(everything)),
        "step_ms_mean": milliseconds(statistics.mean(everything)),
        "step_ms_99th": milliseconds(everything[int(len(everything) * 0.99)]),
        "step_ms_by_action": {
            name: milliseconds(statistics.median(part)) for name, part in sorted(times.items())
        },
        "snapshot_ms": timed(env.snapshot),
        "restore_ms": timed(lambda: env.restore(moment)),
        "fork_ms": timed(lambda: sg.fork(env, 1), 200),
    }


def walked(env: Any, steps: int) -> dict[str, list[float]]:
    """Random episodes; the times of their steps, by kind of action."""
    generator = random.Random(0)
    times: dict[str, list[float]] = {}
    ended = True
    for number in range(steps):
        if ended:
            _, info = env.reset(seed=number)
        action = generator.choice(info["admissible_commands"])
        if generator.random() < 0.1:
            words = info["instruction"].split()
            action = f"search[{' '.join(generator.sample(words, min(4, len(words))))}]"
        begin = time.perf_counter()
        _, _, terminated, truncated, info = env.step(action)
        took = time.perf_counter() - begin
        kind = "search" if action.startswith("search") else "click"
        times.setdefault("buy" if terminated else kind, []).append(took)
        ended = terminated or truncated
    return times


def halfway(env: Any) -> sg.Snapshot:
    """A moment on the page of a product, with an option chosen where there is one."""
    _, info = env.reset(seed=1)
    for place in (0, 2, -1):
        *_, info = env.step(info["admissible_commands"][place])
    return env.snapshot()  # type: ignore[no-any-return]


def timed(call: Callable[[], Any], calls: int = 2000) -> float:
    times = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return milliseconds(statistics.median(times))


def milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 4)


if __name__ == "__main__":
    main()
