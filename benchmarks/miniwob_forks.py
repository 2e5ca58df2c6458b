"""Forks of MiniWoB++'s tasks: is a restored page the one that was captured, and does it go on so?

    python -m benchmarks.miniwob_forks --json results/miniwob_forks.json
    python -m benchmarks.miniwob_forks --tasks chase-circle moving-items --trips 5

A trip: a task is played at random to a random depth and captured; it is played on; then the moment
is restored, which has to show the same pixels, and the same actions are done again, which have to
lead to the same observations, rewards and infos.

    exact       the page was made again from its document and its actions, and all was the same
    replayed    that came out differently, was noticed, and the episode was replayed; then all was
                the same
    refused     the moment could not be captured or restored, and an error said why
    different   none of these: a silent difference, the one thing that must not happen
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from sandboxgym.core.errors import SandboxGymError
from sandboxgym.sandboxes.browser.miniwob import tasks
from sandboxgym.sandboxes.browser.miniwob.env import MiniWoBEnv
from sandboxgym.sandboxes.browser.miniwob.policy import RandomPolicy

RESULTS = ("exact", "replayed", "refused", "different")
DEPTH = 8  # at most so many actions before the capture
BEYOND = 3  # and so many after it

Times = dict[str, list[float]]
Step = tuple[dict[str, Any], float, bool, bool, dict[str, Any]]


def trip(env: MiniWoBEnv, seed: int, times: Times) -> tuple[str, str]:
    """One trip; what became of it, and why."""
    rng = np.random.default_rng(seed)
    policy = RandomPolicy(rng)
    obs, _ = timed(times, "reset", lambda: env.reset(seed=seed))
    for _ in range(int(rng.integers(0, DEPTH + 1))):
        action = policy(obs)
        after = timed(times, "step", lambda action=action: env.step(action))
        obs = after[0]
        if after[2]:
            break
    try:
        moment = timed(times, "snapshot", env.snapshot)
    except SandboxGymError as error:
        return "refused", f"{type(error).__name__}: {error}"
    picture = env.screenshot()
    onward = play(env, policy, obs, moment_ended=env.standing.done)
    told_before = env.metrics.get("unfaithful_restores", 0)
    try:
        timed(times, "restore", lambda: env.restore(moment))
    except SandboxGymError as error:
        return "refused", f"{type(error).__name__}: {error}"
    if env.screenshot() != picture:
        return "different", f"the picture after {moment.recipe.actions}"
    for action, expected in onward:
        found = env.step(action)
        if found != expected:
            return "different", f"{action} after {moment.recipe.actions}: {expected} != {found}"
    if env.metrics.get("unfaithful_restores", 0) > told_before:
        return "replayed", env.unfaithful
    return "exact", ""


def play(
    env: MiniWoBEnv, policy: RandomPolicy, obs: dict[str, Any], *, moment_ended: bool
) -> list[tuple[str, Step]]:
    """Some more actions, each with what it led to."""
    done: list[tuple[str, Step]] = []
    while not moment_ended and len(done) < BEYOND:
        action = policy(obs)
        after = env.step(action)
        done.append((action, after))
        obs, moment_ended = after[0], after[2]
    return done


def timed(times: Times, name: str, call: Any) -> Any:
    begun = time.perf_counter()
    result = call()
    times[name].append((time.perf_counter() - begun) * 1e3)
    return result


def survey(names: list[str], trips: int, seed: int, budget_s: float) -> dict[str, Any]:
    """Trips over tasks in turn, until all are done or the time is up."""
    times: Times = defaultdict(list)
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    reasons: list[dict[str, Any]] = []
    begun = time.perf_counter()
    for number in range(trips):
        for index, name in enumerate(names):
            if time.perf_counter() - begun > budget_s:
                break
            env = MiniWoBEnv(name)
            trip_seed = seed + number * len(names) + index
            try:
                result, why = trip(env, trip_seed, times)
            finally:
                env.close()
            counts[name][result] += 1
            if result != "exact":
                reasons.append({"task": name, "seed": trip_seed, "result": result, "why": why})
                print(f"{name} (seed {trip_seed}): {result}: {why[:500]}", flush=True)
    total = sum(counts.values(), Counter())
    made = sum(total.values())
    return {
        "trips": made,
        "tasks": sum(1 for count in counts.values() if count),
        "total": {result: total[result] for result in RESULTS},
        "exact_share": round(total["exact"] / made, 4) if made else None,
        "declared": tasks.INEXACT,
        "per_task": {name: dict(count) for name, count in counts.items()},
        "ms": {
            name: {
                "median": round(statistics.median(spent), 1),
                "p90": round(float(np.percentile(spent, 90)), 1),
            }
            for name, spent in times.items()
        },
        "machine": f"{platform.machine()}, {platform.system()}",
        "reasons": reasons,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trips", type=int, default=8, help="for each task")
    parser.add_argument("--tasks", nargs="*", help="their names; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    names = arguments.tasks or list(tasks.names())
    report = survey(names, arguments.trips, arguments.seed, arguments.budget)
    print(json.dumps({k: report[k] for k in ("trips", "tasks", "total", "exact_share", "ms")}))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
