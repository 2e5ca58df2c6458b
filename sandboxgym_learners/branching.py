"""Where a rollout forks: the rule that decides it, before the action is drawn.

The gradient estimate stays unbiased only if the decision to open a group at a step uses nothing
that is settled at that step or later. So a rule sees what is known in front of the action: the
entropy of the policy there, where this path branched before, and a threshold that earlier updates
left behind. It never sees the action, the outcome, or the other decisions of the same update.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sandboxgym_learners.tree import Group

if TYPE_CHECKING:
    from sandboxgym_learners.config import TreeConfig


class BiasWarning(UserWarning):
    """An option is switched on that makes the gradient estimate biased."""


@cache
def warn_biased(message: str) -> None:
    """Say once per process that what was switched on biases the gradient."""
    warnings.warn(message, BiasWarning, stacklevel=3)


class BranchRule(Protocol):
    """Decides, in front of every action, whether the rollout forks there."""

    def opens(self, entropy: float, *, depth: int, branches: Sequence[int]) -> bool:
        """Whether a group opens in front of the action at `depth`.

        Args:
            entropy: H(π(· | s)) at this decision.
            depth: Number of decisions before this one in the episode.
            branches: The depths at which this path has branched already, in order.
        """
        ...


@dataclass(slots=True)
class _Budgeted:
    """What all rules have: how many branch points a path may have, and how far apart.

    Attributes:
        max_branches: M, how many branch points a path may have.
        spacing: The least number of decisions between two branch points of a path.
    """

    max_branches: int = 1
    spacing: int = 1

    def __post_init__(self) -> None:
        if self.max_branches < 0:
            raise ValueError(f"max_branches is {self.max_branches}; it must be at least 0")
        if self.spacing < 1:
            raise ValueError(f"spacing is {self.spacing}; it must be at least 1")

    def has_room(self, depth: int, branches: Sequence[int]) -> bool:
        """Whether a path that has branched at `branches` may branch at `depth`."""
        if len(branches) >= self.max_branches:
            return False
        return not branches or depth - branches[-1] >= self.spacing


@dataclass(slots=True)
class EntropyTrigger(_Budgeted):
    """Fork at the first decisions whose entropy reaches a threshold.

    The threshold is an exponential moving quantile: after every update it moves towards that
    update's quantile of decision entropies. During an update it stands still. Until the first
    update has ended there is none, and nothing branches. Without a quantile it never moves.

    Attributes:
        quantile: The share of decisions whose entropy lies below the threshold; None to keep it.
        smoothing: How much of the old threshold an update keeps, from 0 to just under 1.
        threshold: The present threshold in nats; None before the first update has ended.
    """

    quantile: float | None = 0.8
    smoothing: float = 0.9
    threshold: float | None = None

    def __post_init__(self) -> None:
        _Budgeted.__post_init__(self)
        if self.quantile is not None and not 0 <= self.quantile <= 1:
            raise ValueError(f"quantile is {self.quantile}; it must lie in [0, 1]")
        if not 0 <= self.smoothing < 1:
            raise ValueError(f"smoothing is {self.smoothing}; it must lie in [0, 1)")

    def opens(self, entropy: float, *, depth: int, branches: Sequence[int]) -> bool:
        """Whether a group opens in front of the action at `depth`; see `BranchRule`."""
        if self.threshold is None or not self.has_room(depth, branches):
            return False
        return entropy >= self.threshold

    def end_update(self, trees: Iterable[Group]) -> None:
        """Fold the entropies of a finished update into the threshold for the next ones.

        Decisions count by their path weight, so that a prefix with many forks below it does not
        count its continuation many times over.
        """
        if self.quantile is None:
            return
        entropies: list[float] = []
        weights: list[float] = []
        for tree in trees:
            for visit in tree.visits():
                entropies += [step.entropy for step in visit.segment.steps]
                weights += [visit.weight] * len(visit.segment.steps)
        if not entropies:
            return
        latest = weighted_quantile(entropies, weights, self.quantile)
        if self.threshold is None:
            self.threshold = latest
        else:
            self.threshold = self.smoothing * self.threshold + (1 - self.smoothing) * latest

    def state_dict(self) -> dict[str, Any]:
        """All that changes from update to update, as plain data for a checkpoint."""
        return {"threshold": self.threshold}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint that `state_dict` wrote."""
        self.threshold = state["threshold"]


@dataclass(slots=True)
class Coin(_Budgeted):
    """Fork at depths that coins decide, whatever the policy thinks there.

    There is one coin a depth and update, the same for all paths. So the coins of an update are
    known before anything is collected, in whatever order that happens. With probability 1 a path
    forks at its first decisions, M of them.

    Attributes:
        probability: That a coin says yes.
        seed: Decides the coins.
        update: How many updates have ended; every update has new coins.
    """

    probability: float = 1.0
    seed: int = 0
    update: int = 0

    def __post_init__(self) -> None:
        _Budgeted.__post_init__(self)
        if not 0 <= self.probability <= 1:
            raise ValueError(f"probability is {self.probability}; it must lie in [0, 1]")

    def opens(self, entropy: float, *, depth: int, branches: Sequence[int]) -> bool:
        """Whether a group opens in front of the action at `depth`; see `BranchRule`."""
        if not self.has_room(depth, branches):
            return False
        coin = np.random.default_rng((self.seed, self.update, depth)).random()
        return bool(coin < self.probability)

    def end_update(self, trees: Iterable[Group]) -> None:
        """Take new coins."""
        self.update += 1

    def state_dict(self) -> dict[str, Any]:
        """All that changes from update to update, as plain data for a checkpoint."""
        return {"update": self.update}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint that `state_dict` wrote."""
        self.update = state["update"]


def make_rule(tree: TreeConfig, *, seed: int) -> EntropyTrigger | Coin:
    """The rule that a configuration names."""
    if tree.max_branches is None:
        raise ValueError("how many branch points a path may have is not decided yet")
    if tree.rule == "coin" or tree.rule == "first":
        probability = tree.probability if tree.rule == "coin" else 1.0
        return Coin(tree.max_branches, tree.spacing, probability=probability, seed=seed)
    if tree.rule == "threshold":
        return EntropyTrigger(
            tree.max_branches, tree.spacing, quantile=None, threshold=tree.threshold
        )
    return EntropyTrigger(
        tree.max_branches, tree.spacing, quantile=tree.quantile, smoothing=tree.smoothing
    )


def weighted_quantile(values: Sequence[float], weights: Sequence[float], quantile: float) -> float:
    """The least value such that values up to it hold at least `quantile` of the weight."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(np.asarray(weights, dtype=np.float64)[order])
    position = int(np.searchsorted(reached, quantile * reached[-1]))
    return float(values[order[min(position, len(values) - 1)]])


def post_hoc_top(entropies: Sequence[float], *, max_branches: int, spacing: int = 1) -> list[int]:
    """Depths of the highest entropies on a *finished* backbone. Biased; for reproduction only.

    This is the rule as usually described: roll out the backbone, then branch where its entropy was
    highest. Which decision that is depends on what the backbone did later, and the backbone is
    one of the siblings compared there, so the comparison is not fair. Use `EntropyTrigger`.
    """
    warn_biased(
        "choosing branch points after the backbone is finished biases the gradient; "
        "use EntropyTrigger, which decides before the action is drawn"
    )
    chosen: list[int] = []
    for depth in sorted(range(len(entropies)), key=lambda d: -entropies[d]):
        if len(chosen) == max_branches:
            break
        if all(abs(depth - other) >= spacing for other in chosen):
            chosen.append(depth)
    return sorted(chosen)
