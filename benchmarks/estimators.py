"""What the gradient estimators are worth: bias, variance, and the predicted gain of branching.

    python -m benchmarks.estimators --out estimators.json --plot estimators.png

1. Bias, exactly: the expectation over every tree there is, on small random decision processes.
2. Variance, by simulation, in two worlds that differ in how much comes before the decisions that
   matter: of the whole gradient, at an equal number of returns and at an equal number of
   environment steps, and of a single advantage, each relative to RLOO.
3. The formula for what branching saves, against simulation, where returns are mostly noise.

Intervals are 95 %.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.branching_efficiency import EPISODES, measure_efficiency
from benchmarks.branching_worlds import errand_world
from benchmarks.enumerable_mdp import (
    Case,
    Chance,
    Sampler,
    expected_gradient,
    outcomes,
    random_cases,
)
from benchmarks.simulated_trees import Simulated, known_from, print_table, simulate
from benchmarks.wrong_rules import (
    PostHocSampler,
    branch_steps_only,
    flat_weights,
    own_baseline,
    standardised,
)
from sandboxgym_learners.advantages import Estimator, grpo, nested_loo, paper, rloo, vineppo
from sandboxgym_learners.algorithms import Shape
from sandboxgym_learners.branching import BiasWarning, EntropyTrigger
from sandboxgym_learners.efficiency import efficiency
from sandboxgym_learners.tree import Group

MOST_ROOTS = 130
"""How many outcomes a single root may have to be enumerated; a tree of two has the square."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trees", type=int, default=2_000, help="of each kind in each world")
    parser.add_argument("--noise-trees", type=int, default=20_000, help="to check the formula")
    parser.add_argument("--out", type=Path, help="write the JSON here")
    parser.add_argument("--plot", type=Path, help="draw the variances here; needs matplotlib")
    args = parser.parse_args()
    if args.trees < 2 or args.noise_trees < 2:
        parser.error("a variance needs at least two trees")
    if args.plot and importlib.util.find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib: pip install matplotlib")
    warnings.simplefilter("ignore", BiasWarning)

    start = time.perf_counter()
    results: dict[str, Any] = {
        "bias": measure_bias(),
        "variance": measure_variance(args.trees),
        "efficiency": measure_efficiency(args.noise_trees),
        "trees": args.trees,
        "noise_trees": args.noise_trees,
        "machine": {"python": platform.python_version(), "processor": platform.machine()},
    }
    results["seconds"] = round(time.perf_counter() - start, 1)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if args.plot:
        draw(results["variance"], args.plot)


# 1. Bias


def measure_bias() -> list[dict[str, Any]]:
    """Every rule on every shape of tree; the largest bias found over several processes."""
    shapes = {
        "one branch point": random_cases(20, limit=1_500),
        "three siblings": random_cases(5, siblings=3, limit=2_000),
        "two, nested": random_cases(20, max_branches=2, limit=2_000),
        "two, in forks too": random_cases(5, max_branches=2, forks_branch=True, limit=2_000),
        "three, nested": random_cases(20, max_branches=3, limit=4_100),
    }
    rows = [
        {"shape": shape, "rule": rule, **_worst(cases, rule)}
        for shape, cases in shapes.items()
        for rule in RULES
    ]
    print("\nBias |E[estimate] - gradient| / |gradient|, the largest over the processes, exact")
    print_table(["rule", *shapes], [[rule, *_found(rows, rule)] for rule in RULES])
    print("(three, nested: the first branch point is in front of the first action, no prefix)")
    return rows


@dataclass(frozen=True, slots=True)
class Rule:
    """A way to credit trees, and to sample them where that is part of what is wrong."""

    estimator: Estimator
    sampler: Callable[[Sampler], Callable[[Chance], Group]] = lambda sampler: sampler


def _post_hoc(sampler: Sampler) -> PostHocSampler:
    rule = sampler.rule
    return PostHocSampler(sampler, rule.max_branches if isinstance(rule, EntropyTrigger) else 0)


def _flat(sampler: Sampler) -> Sampler:
    return replace(sampler, rule=None)


RULES = {
    "nested_loo": Rule(nested_loo),
    "nested_loo, backbone_share .7": Rule(partial(nested_loo, backbone_share=0.7)),
    "nested_loo, mix .7": Rule(partial(nested_loo, mix=0.7)),
    "vineppo": Rule(vineppo),
    "rloo": Rule(rloo, _flat),
    "grpo": Rule(grpo, _flat),
    "grpo, normalised": Rule(partial(grpo, normalise=True), _flat),
    "paper": Rule(paper),
    "branch steps only": Rule(branch_steps_only),
    "highest entropy, post hoc": Rule(nested_loo, _post_hoc),
    "distinct siblings": Rule(nested_loo, lambda sampler: replace(sampler, distinct=True)),
    "a single root": Rule(nested_loo, lambda sampler: replace(sampler, backbones=1)),
    "oneself in the baseline": Rule(own_baseline),
    "standard deviation": Rule(standardised),
    "flat weights": Rule(flat_weights),
}


def _worst(cases: Sequence[Case], name: str) -> dict[str, float | None]:
    """The largest absolute and relative bias of a rule; None where no case can be listed."""
    rule = RULES[name]
    found = [
        (expected_gradient(rule.sampler(case.sampler), rule.estimator, case.sampler.policy), case)
        for case in cases
        if _can_be_listed(rule, case.sampler, name)
    ]
    errors = [(np.asarray(expectation - case.exact), case.exact) for expectation, case in found]
    absolute = [float(np.abs(error).max()) for error, _ in errors]
    relative = [float(np.linalg.norm(error) / np.linalg.norm(exact)) for error, exact in errors]
    return {
        "cases": len(found),
        "absolute": max(absolute, default=None),
        "relative": max(relative, default=None),
    }


def _can_be_listed(rule: Rule, sampler: Sampler, name: str) -> bool:
    """Whether there are few enough trees, and enough actions for distinct siblings."""
    if name == "distinct siblings" and sampler.siblings > sampler.policy.matrix.shape[1]:
        return False
    single = outcomes(rule.sampler(replace(sampler, backbones=1)))
    return sum(1 for _ in itertools.islice(single, MOST_ROOTS + 1)) <= MOST_ROOTS


def _found(rows: Sequence[dict[str, Any]], rule: str) -> list[str]:
    found = [row["relative"] for row in rows if row["rule"] == rule]
    return ["-" if value is None else f"{value:.1e}" for value in found]


# 2. Variance


WORLDS = {"short (1 routine step, 4 decisive)": 1, "long (20 routine steps, 4 decisive)": 20}


@dataclass(frozen=True, slots=True)
class Entry:
    """A tree of B roots that branch once, in K siblings, and its estimator; K = 0 for no branch."""

    estimator: Estimator
    roots: int
    siblings: int = 0
    unbiased: bool = True


SHAPES = {
    "rloo 16": Entry(rloo, EPISODES),
    "grpo 16, normalised": Entry(partial(grpo, normalise=True), EPISODES, unbiased=False),
    "nested_loo 2x8": Entry(nested_loo, 2, 8),
    "nested_loo 2x8, mix .7": Entry(partial(nested_loo, mix=0.7), 2, 8),
    "nested_loo 4x4": Entry(nested_loo, 4, 4),
    "nested_loo 8x2": Entry(nested_loo, 8, 2),
    "branch steps only 2x8": Entry(branch_steps_only, 2, 8, unbiased=False),
}


def measure_variance(trees: int) -> list[dict[str, Any]]:
    """Every estimator in both worlds, relative to RLOO."""
    rows = []
    for world, routine in WORLDS.items():
        mdp, policy = errand_world(routine)
        trigger = EntropyTrigger(threshold=max(policy.entropies[:-1]))
        runs = {}
        for name, shape in SHAPES.items():
            sampler = Sampler(
                mdp,
                policy,
                trigger if shape.siblings else None,
                backbones=shape.roots,
                siblings=shape.siblings,
            )
            runs[name] = simulate(
                sampler, shape.estimator, decisive=routine, trees=trees, unbiased=shape.unbiased
            )
        world_rows = [
            _variance_row(world, name, run, runs["rloo 16"]) for name, run in runs.items()
        ]
        print(f"\nVariance of the gradient at equal signal, relative to RLOO 16: {world}")
        header = ["estimator", "equal returns", "equal steps", "formula"]
        header += ["one advantage", "formula", "signal"]
        print_table(header, [_variance_cells(row) for row in world_rows])
        rows += world_rows
    return rows


def _variance_row(world: str, name: str, run: Simulated, rloo_run: Simulated) -> dict[str, Any]:
    variance = run.variance / rloo_run.variance
    shape = SHAPES[name]
    known = known_from(run.trees)
    predicted = law = None
    if known is not None and known.eta is not None:
        tree = Shape(shape.roots, shape.siblings, 1)
        predicted = efficiency(known, tree, episodes=EPISODES)
        law = (1 - known.eta) * _loo(shape.siblings) / _loo(EPISODES)
    return {
        "world": world,
        "estimator": name,
        "equal_returns": variance.scaled(run.returns / rloo_run.returns).to_json(),
        "equal_steps": (variance * (run.cost / rloo_run.cost)).to_json(),
        "advantage": (run.advantage / rloo_run.advantage).to_json(),
        "signal": run.signal.to_json(),
        "returns": run.returns,
        "env_steps": run.cost.value,
        "eta": known.eta if known else None,
        "remaining": known.remaining if known else None,
        "predicted_equal_steps": predicted,
        "predicted_advantage": law,
    }


def _loo(members: int) -> float:
    """By how much leaving oneself out of the baseline raises the variance of an advantage."""
    return members / (members - 1)


def _variance_cells(row: dict[str, Any]) -> list[str]:
    def cell(name: str) -> str:
        return "{value:.2f} [{low:.2f}, {high:.2f}]".format(**row[name])

    def formula(name: str) -> str:
        return "-" if row[name] is None else f"{row[name]:.2f}"

    return [
        row["estimator"],
        cell("equal_returns"),
        cell("equal_steps"),
        formula("predicted_equal_steps"),
        cell("advantage"),
        formula("predicted_advantage"),
        cell("signal"),
    ]


# Showing it


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """One panel for each world: variance relative to RLOO, with intervals."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    ticks = (0.25, 0.5, 1, 2, 4)
    figure, panels = pyplot.subplots(1, len(WORLDS), figsize=(11, 4), sharey=True)
    for panel, world in zip(panels, WORLDS, strict=True):
        found = [row for row in rows if row["world"] == world]
        for offset, column in ((-0.15, "equal_returns"), (0.15, "equal_steps")):
            values = [row[column]["value"] for row in found]
            below = [row[column]["value"] - row[column]["low"] for row in found]
            above = [row[column]["high"] - row[column]["value"] for row in found]
            places = [index + offset for index in range(len(found))]
            panel.errorbar(
                values, places, xerr=(below, above), fmt="o", label=column.replace("_", " ")
            )
        panel.axvline(1, color="grey", linewidth=1)
        panel.set_xscale("log")
        panel.set_xticks(ticks, [str(tick) for tick in ticks])
        panel.minorticks_off()
        panel.set_yticks(range(len(found)), [row["estimator"] for row in found])
        panel.set_title(world, fontsize=10)
        panel.set_xlabel("gradient variance at equal signal, RLOO = 1")
    panels[0].invert_yaxis()
    panels[0].legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
