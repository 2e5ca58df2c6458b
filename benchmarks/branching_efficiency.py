"""What branching is predicted to save, against simulation, where returns are mostly noise."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from benchmarks.branching_worlds import NOISE, NoiseSetting, noise_world
from benchmarks.enumerable_mdp import Sampler, TabularPolicy
from benchmarks.simulated_trees import known_from, print_table, simulate
from sandboxgym_learners.advantages import nested_loo, rloo
from sandboxgym_learners.algorithms import Shape
from sandboxgym_learners.branching import EntropyTrigger
from sandboxgym_learners.efficiency import efficiency

EPISODES = 16
"""N, the group size of RLOO that everything is compared with."""


def measure_efficiency(trees: int) -> list[dict[str, Any]]:
    """The formula from exact components, what trees predict, and the simulated ratio."""
    rows = []
    for setting in NOISE:
        mdp, policy = noise_world(setting)
        trigger = EntropyTrigger(threshold=policy.entropies[setting.before])
        tree = Sampler(mdp, policy, trigger, backbones=setting.roots, siblings=setting.siblings)
        episodes = Sampler(mdp, policy, None, backbones=EPISODES)
        forked = simulate(tree, nested_loo, decisive=setting.before, trees=trees)
        flat = simulate(episodes, rloo, decisive=setting.before, trees=trees)
        ratio = (forked.variance / flat.variance) * (forked.cost / flat.cost)
        known = known_from(forked.trees)
        assert known is not None
        shape = Shape(setting.roots, setting.siblings, 1)
        rows.append(
            {
                **asdict(setting),
                "formula": _formula(setting, policy),
                "predicted": efficiency(known, shape, episodes=EPISODES),
                "simulated": ratio.to_json(),
            }
        )
    print(f"\nVariance times cost of the tree relative to RLOO {EPISODES}, returns pure noise")
    print_table(
        ["steps", "noise", "tree", "formula", "predicted", "simulated", "difference"],
        [
            [
                f"{row['before']} + {row['after']}",
                f"{row['noise_before']} / {row['noise_after']}",
                f"{row['roots']}x{row['siblings']}",
                f"{row['formula']:.3f}",
                f"{row['predicted']:.3f}",
                "{value:.3f} [{low:.3f}, {high:.3f}]".format(**row["simulated"]),
                f"{row['simulated']['value'] - row['predicted']:+.3f}",
            ]
            for row in rows
        ],
    )
    return rows


def _formula(setting: NoiseSetting, policy: TabularPolicy) -> float:
    """The closed form of `sandboxgym_learners.efficiency`, from exact components."""
    between = setting.before * setting.noise_before**2
    within = setting.after * setting.noise_after**2
    scores = [1 - sum(p * p for p in row) for row in policy.probabilities[:-1]]
    return closed_form(
        eta=between / (between + within),
        remaining=setting.after / (setting.before + setting.after),
        prefix_score=sum(scores[: setting.before]) / sum(scores),
        roots=setting.roots,
        siblings=setting.siblings,
        episodes=EPISODES,
    )


def closed_form(
    *, eta: float, remaining: float, prefix_score: float, roots: int, siblings: int, episodes: int
) -> float:
    """Variance times cost of a tree relative to RLOO, where returns do not depend on actions."""
    before = prefix_score * (eta + (1 - eta) / siblings) * roots / (roots - 1)
    after = (1 - prefix_score) * (1 - eta) / (siblings - 1)
    cost = 1 + (siblings - 1) * remaining
    return (before + after) * cost / (episodes / (episodes - 1))
