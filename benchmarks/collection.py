"""How many environment steps a processor second collects, with the tiny model, all trees at once.

    python -m benchmarks.collection --out benchmarks/results/collection.json

Policies of two widths are cloned on generated houses as in the demo. Then trees of 64 tasks are
collected at once, independent episodes (RLOO) and forks (BPO) in turn, in one thread. A step is an
action of a policy and the environment's answer to it; the time of everything that collecting does
counts: prompts, the model, drawing, environments, forks.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
import tyro

from benchmarks.machine import describe
from sandboxgym_learners import demo
from sandboxgym_learners.branching import EntropyTrigger
from sandboxgym_learners.collect import Collector
from sandboxgym_learners.config import TrainConfig
from sandboxgym_learners.jobs import options
from sandboxgym_learners.starting import starting_policy

TASKS = 64
SHAPES = {"rloo": {"roots": 8}, "bpo": {"roots": 2, "siblings": 8}}


def measure(width: int, rounds: int) -> dict[str, Any]:
    """Steps a processor second of both shapes, a row a round, and where the time of a step goes."""
    settings = {**demo.SETTINGS, "policy.width": width}
    config = tyro.cli(TrainConfig, args=["--out", "unused", *options(settings)])
    policy = starting_policy(config)
    world = config.world
    speeds: dict[str, list[float]] = {name: [] for name in SHAPES}
    collectors = {
        name: Collector.in_world(policy, world, world.make_train, config.prompt) for name in SHAPES
    }
    rule = EntropyTrigger(quantile=0.9)
    rule.end_update(collectors["rloo"].collect(range(TASKS), roots=2, seed=(0,)))
    for number in range(1, rounds + 1):
        for name, shape in SHAPES.items():
            costs = collectors[name].costs
            steps, begin = costs.env_steps, time.process_time()
            collectors[name].collect(
                range(TASKS), **shape, rule=rule if "siblings" in shape else None, seed=(number,)
            )
            seconds = time.process_time() - begin
            speeds[name].append((costs.env_steps - steps) / seconds)
    return {name: _row(speeds[name], collectors[name]) for name in SHAPES}


def _row(speeds: list[float], collector: Collector) -> dict[str, Any]:
    costs = collector.costs
    return {
        "steps_per_cpu_second": statistics.median(speeds),
        "slowest_and_fastest": [min(speeds), max(speeds)],
        "microseconds_of_a_step": {
            "policy": 1e6 * costs.policy_s / costs.env_steps,
            "environment": 1e6 * costs.env_s / costs.env_steps,
            "forks": 1e6 * costs.restore_s / costs.env_steps,
        },
        "model_tokens_of_a_step": costs.forward_tokens / costs.env_steps,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--widths", nargs="+", type=int, default=[32, 64], help="of the model")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, help="write the JSON here")
    args = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {"machine": describe(), "tasks_at_once": TASKS, "widths": {}}
    for width in args.widths:
        results["widths"][width] = found = measure(width, args.rounds)
        for name, row in found.items():
            low, high = row["slowest_and_fastest"]
            print(
                f"width {width} {name}: {row['steps_per_cpu_second']:,.0f} steps a processor second"
                f" ({low:,.0f} to {high:,.0f})"
            )
    if args.out:
        args.out.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
