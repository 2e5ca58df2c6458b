"""The algorithms: what each collects, how it gives credit, and how it steps. The loop is the same.

Whatever a configuration leaves open, the algorithm fills in: that is what `Shape` and `Schedule`
here are for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sandboxgym_learners.advantages import Estimator, gae, grpo, nested_loo, paper, rloo, vineppo

EVERY_STEP = 1_000_000
"""As many branch points as any episode has decisions."""


@dataclass(frozen=True)
class CreditConfig:
    """The options of the estimators in `advantages`; each algorithm reads its own.

    Attributes:
        backbone_share: (bpo) The weight of a backbone in its group; the forks share the rest. None
            for 1/K, the same for all. Unbiased.
        mix: (bpo) λ, the part of the baseline below a branch point that the siblings give; the
            other roots give the rest. Unbiased.
        normalise: (grpo) Divide by the standard deviation of the group. Biased.
        decay: (paper) What a branch point is worth one decision earlier.
        gamma: (ppo) What a reward one decision later is worth. Below 1 it is another objective.
        trace: (ppo) λ of the critic's advantages. Below 1 it is biased by the critic's error.
        standardise: (ppo) Advantages of an update get mean 0 and standard deviation 1.
    """

    backbone_share: float | None = None
    mix: float = 1.0
    normalise: bool = False
    decay: float = 0.95
    gamma: float = 1.0
    trace: float = 0.95
    standardise: bool = True


@dataclass(frozen=True, slots=True)
class Shape:
    """What is collected from a task: B roots, each with up to M groups of K siblings."""

    roots: int
    siblings: int = 2
    max_branches: int = 0

    @property
    def branches(self) -> bool:
        """Whether it is more than independent episodes."""
        return self.max_branches > 0 and self.siblings > 1

    def __str__(self) -> str:
        return (
            f"{self.roots}x{self.siblings}x{self.max_branches}"
            if self.branches
            else (f"{self.roots} episodes")
        )


@dataclass(frozen=True, slots=True)
class Schedule:
    """How often and how far the policy steps on what one update collected.

    Attributes:
        rate: Learning rate of Adam.
        epochs: Passes over the decisions.
        minibatches: Optimiser steps in a pass.
    """

    rate: float = 5e-4
    epochs: int = 1
    minibatches: int = 1


@dataclass(frozen=True)
class Algorithm:
    """What tells one algorithm from another.

    Attributes:
        credit: Makes the estimator, which writes advantages and weights on a tree.
        shape: What it collects, unless the configuration says otherwise.
        rule: Where it branches: a name of `branching.RULES`.
        schedule: How it steps.
        critic: Whether a critic values every decision before the estimator runs.
    """

    credit: Callable[[CreditConfig], Estimator]
    shape: Shape
    rule: str = "quantile"
    schedule: Schedule = Schedule()
    critic: bool = False


ALGORITHMS = {
    "bpo": Algorithm(
        lambda c: partial(nested_loo, backbone_share=c.backbone_share, mix=c.mix), Shape(4, 3, 1)
    ),
    "rloo": Algorithm(lambda _: rloo, Shape(16)),
    "grpo": Algorithm(lambda c: partial(grpo, normalise=c.normalise), Shape(16)),
    "ppo": Algorithm(
        lambda c: partial(gae, gamma=c.gamma, trace=c.trace),
        Shape(16),
        schedule=Schedule(rate=3e-4, epochs=4, minibatches=3),
        critic=True,
    ),
    "vineppo": Algorithm(lambda _: vineppo, Shape(2, 4, EVERY_STEP), rule="first"),
    "paper": Algorithm(lambda c: partial(paper, decay=c.decay), Shape(1, 4, 3)),
}
