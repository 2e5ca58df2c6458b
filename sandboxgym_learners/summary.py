"""Numbers that describe the trees of one update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandboxgym_learners.tree import Group


def describe(trees: Sequence[Group]) -> dict[str, Any]:
    """The fields of `updates.Update` that the trees alone decide.

    Leaves and decisions count by their path weight, so that the numbers estimate what one episode
    of the policy is like, however often a tree branches.
    """
    opened = [group for tree in trees for group in tree.groups() if group is not tree]
    groups = [*trees, *opened]
    return {
        "success": _mean([tree.success_rate() for tree in trees]),
        "mean_return": _mean([tree.mean_return() for tree in trees]),
        "episode_steps": episode_steps(trees),
        "entropy": _decision_entropy(trees),
        "branch_points": len(opened),
        "same_action_share": _mean([group.distinct_actions() < 2 for group in opened]),
        "constant_share": _mean([group.is_constant() for group in groups]),
    }


def episode_steps(trees: Sequence[Group]) -> float | None:
    """Mean number of decisions from the reset to the end of an episode."""
    return _mean(
        [
            sum(leaf.weight * (leaf.segment.steps[-1].depth + 1) for leaf in tree.leaves())
            for tree in trees
        ]
    )


def _decision_entropy(trees: Sequence[Group]) -> float | None:
    total = weight = 0.0
    for tree in trees:
        for visit in tree.visits():
            total += visit.weight * sum(step.entropy for step in visit.segment.steps)
            weight += visit.weight * len(visit.segment.steps)
    return total / weight if weight else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
