"""What a gradient costs in real worlds: the variance of trees of each shape, the policy kept still.

    python -m benchmarks.fixed_policy --out benchmarks/results/fixed_policy.json

In each world of the learning curves a policy is warmed up as there, and never changed. Of every
training task so many trees of every shape are collected and credited, and the gradient of each is
taken. The trace of the covariance between trees of one task, times what a tree costs in
environment steps, says how much an estimator's gradient costs; RLOO's is 1. Intervals hold 95 % of
a bootstrap over trees. Beside the measured ratio stands what the learner predicts from the same
trees (`efficiency`).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from numpy.typing import NDArray

from benchmarks.learning_study import METHODS
from benchmarks.learning_worlds import WORLDS
from benchmarks.machine import describe
from sandboxgym_learners.adaptive import AdaptiveShape
from sandboxgym_learners.algorithms import Shape
from sandboxgym_learners.anova import Components, NestedAnova
from sandboxgym_learners.branching import BranchRule, EntropyTrigger, make_rule
from sandboxgym_learners.collect import Collector
from sandboxgym_learners.config import TrainConfig
from sandboxgym_learners.efficiency import efficiency
from sandboxgym_learners.jobs import options
from sandboxgym_learners.learning import Learner
from sandboxgym_learners.policy import Policy
from sandboxgym_learners.starting import starting_policy

RESAMPLES = 1000


@dataclass(frozen=True)
class Measured:
    """The trees of one shape.

    Attributes:
        products: For every task the inner products of its trees' gradients, (trees, trees).
        steps: For every task what its trees cost in environment steps, (trees,).
        known: What a nested analysis of variance says of them; None where nothing branched.
        branched: The share of roots that branched.
        success: The share of successful episodes.
    """

    products: Sequence[NDArray[np.float64]]
    steps: Sequence[NDArray[np.float64]]
    known: Components | None
    branched: float
    success: float

    def variance_times_cost(self, rows: Sequence[NDArray[np.int64]] | None = None) -> float:
        """Trace of the covariance of a tree's gradient, times its steps; of some trees or all."""
        rows = rows or [np.arange(len(steps)) for steps in self.steps]
        variances, costs = [], []
        for products, steps, chosen in zip(self.products, self.steps, rows, strict=True):
            count = len(chosen)
            some = products[np.ix_(chosen, chosen)]
            variances.append((np.trace(some) - some.sum() / count) / (count - 1))
            costs.append(steps[chosen].mean())
        return float(np.mean(variances) * np.mean(costs))

    def resampled(self, dice: np.random.Generator) -> float:
        """The same of as many trees drawn again, with the bias of doing so taken away."""
        rows = [dice.integers(len(steps), size=len(steps)) for steps in self.steps]
        counts = [len(steps) for steps in self.steps]
        return self.variance_times_cost(rows) * float(np.mean([n / (n - 1) for n in counts]))


class World:
    """A world of the learning curves with the policy that training starts from there."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.seed = seed
        self.config = self.configured("rloo")
        self.policy: Policy = starting_policy(self.config)
        self.collector = Collector.in_world(
            self.policy, self.config.world, self.config.world.make_train, self.config.prompt
        )

    def configured(self, method: str) -> TrainConfig:
        """The configuration of a method here."""
        settings = {**WORLDS[self.name].settings, **METHODS[method].settings}
        given = ["--out", "unused", "--seed", str(self.seed), *options(settings)]
        return tyro.cli(TrainConfig, args=given)

    def threshold(self, quantile: float) -> float:
        """The entropy that so large a share of decisions lies below."""
        trigger = EntropyTrigger(quantile=quantile)
        tasks = range(self.config.world.train_tasks)
        trigger.end_update(self.collector.collect(tasks, roots=32, seed=(self.seed, 0)))
        assert trigger.threshold is not None
        return trigger.threshold

    def measure(
        self, method: str, shape: Shape, rule: BranchRule | None, *, trees: int, key: int
    ) -> Measured:
        """Collect, credit and differentiate so many trees of every task."""
        config = self.configured(method)
        credit = config.algorithm.credit(config.credit)
        learner = Learner(self.policy, config.learning, config.schedule)
        tasks = config.world.train_tasks
        anova = NestedAnova(memory=1.0)
        gradients: list[list[NDArray[np.float32]]] = [[] for _ in range(tasks)]
        steps: list[list[int]] = [[] for _ in range(tasks)]
        branched, successes = [], []
        for number in range(trees):
            collected = self.collector.collect(
                range(tasks),
                roots=shape.roots,
                siblings=shape.siblings,
                rule=rule if shape.branches else None,
                seed=(self.seed, key, number),
            )
            for task, tree in enumerate(collected):
                credit(tree)
                gradients[task].append(learner.gradient(tree).numpy())
                steps[task].append(sum(1 for _ in tree.steps()))
                branched += [root.branch is not None for root in tree.members]
                successes.append(tree.success_rate())
            anova.end_update(collected)
        return Measured(
            [_inner_products(rows) for rows in gradients],
            [np.array(counts, dtype=np.float64) for counts in steps],
            anova.known,
            float(np.mean(branched)),
            float(np.mean(successes)),
        )


def measure_world(name: str, *, trees: int, seed: int) -> dict[str, Any]:
    """The table of one world."""
    world = World(name, seed)
    threshold = world.threshold(world.configured("bpo").tree.quantile)
    rule = EntropyTrigger(max_branches=1, quantile=None, threshold=threshold)
    alone, fixed = world.config.shape, world.configured("bpo").shape
    base = world.measure("rloo", alone, None, trees=trees, key=1)
    if not base.variance_times_cost():
        raise SystemExit(f"{name}: no two returns of a task differ, so that no gradient varies")
    branching = world.measure("bpo", fixed, rule, trees=trees, key=2)
    usual = world.configured("bpo-2x8").shape
    rows = {
        "rloo": _row(base, base, None, alone),
        "bpo": _row(branching, base, alone, fixed),
        "bpo-2x8": _row(
            world.measure("bpo-2x8", usual, rule, trees=trees, key=5), base, alone, usual
        ),
    }
    chosen = _adaptive_choice(world.configured("bpo-adaptive"), branching.known)
    if chosen.branches:
        adaptive = world.measure("bpo-adaptive", chosen, rule, trees=trees, key=3)
        rows["bpo-adaptive"] = _row(adaptive, base, alone, chosen)
    else:
        rows["bpo-adaptive"] = {**_row(base, base, None, chosen), "falls_back_to": "rloo"}
    few = max(4, trees // 4)
    vineppo = world.configured("vineppo")
    everywhere = make_rule(vineppo.tree, seed=seed)
    every = world.measure("vineppo", vineppo.shape, everywhere, trees=few, key=4)
    rows["vineppo"] = _row(every, base, None, vineppo.shape)
    return {
        "describes": WORLDS[name].describes,
        "success": base.success,
        "threshold_nats": threshold,
        "trees_of_each_task": trees,
        "tasks": world.config.world.train_tasks,
        "shapes": rows,
    }


def _adaptive_choice(config: TrainConfig, known: Components | None) -> Shape:
    """What the learner would choose, having seen as many trees as were measured."""
    adaptive = AdaptiveShape(replace(config.adaptive, first_updates=1), config.shape)
    adaptive.end_update(known)
    return adaptive.chosen


def _row(one: Measured, base: Measured, alone: Shape | None, shape: Shape) -> dict[str, Any]:
    ratio = one.variance_times_cost() / base.variance_times_cost()
    interval = None
    if one is not base:
        dice = np.random.default_rng(0)
        ratios = [one.resampled(dice) / base.resampled(dice) for _ in range(RESAMPLES)]
        interval = np.quantile(ratios, [0.025, 0.975]).tolist()
    predicted = None
    if alone is not None and one.known is not None:
        predicted = efficiency(one.known, shape, episodes=alone.roots)
    return {
        "shape": {
            "roots": shape.roots,
            "siblings": shape.siblings if shape.branches else None,
            "max_branches": shape.max_branches,
        },
        "variance_times_cost": one.variance_times_cost(),
        "over_rloo": ratio,
        "interval_95": interval,
        "predicted": predicted,
        "steps_of_a_tree": float(np.mean([steps.mean() for steps in one.steps])),
        "roots_that_branched": one.branched,
        "eta": one.known.eta if one.known else None,
        "remaining": one.known.remaining if one.known else None,
    }


def _inner_products(rows: Sequence[NDArray[np.float32]]) -> NDArray[np.float64]:
    stacked = np.stack(rows).astype(np.float64)
    return np.asarray(stacked @ stacked.T)


def _print(name: str, found: Mapping[str, Any]) -> None:
    print(f"\n{name}: {found['describes']}; success {found['success']:.2f}")
    for method, row in found["shapes"].items():
        low, high = row["interval_95"] or (1.0, 1.0)
        predicted = "" if row["predicted"] is None else f"  predicted {row['predicted']:.2f}"
        print(
            f"  {method:13} {row['over_rloo']:6.2f} [{low:.2f}, {high:.2f}]{predicted}"
            f"  {row['steps_of_a_tree']:.0f} steps a tree"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", nargs="+", choices=list(WORLDS), default=list(WORLDS))
    parser.add_argument("--trees", type=int, default=40, help="of each task and shape")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the JSON here")
    args = parser.parse_args()
    if args.trees < 2:
        parser.error("a variance needs at least two trees")
    torch.set_num_threads(1)
    begin = time.perf_counter()
    worlds = {}
    for name in args.worlds:
        worlds[name] = measure_world(name, trees=args.trees, seed=args.seed)
        _print(name, worlds[name])
    if args.out:
        results = {
            "worlds": worlds,
            "machine": describe(),
            "seconds": round(time.perf_counter() - begin, 1),
        }
        args.out.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
