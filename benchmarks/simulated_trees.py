"""Many simulated trees of one kind: the variance of their gradient, what they cost, how sure it is.

Intervals are 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.enumerable_mdp import Array, Dice, Sampler, estimated_gradient, exact_gradient
from sandboxgym_learners.advantages import Estimator
from sandboxgym_learners.anova import Components, NestedAnova
from sandboxgym_learners.tree import Group


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and the standard error of its logarithm."""

    value: float
    log_error: float = 0.0

    def __truediv__(self, other: Estimate) -> Estimate:
        return Estimate(self.value / other.value, math.hypot(self.log_error, other.log_error))

    def __mul__(self, other: Estimate) -> Estimate:
        return Estimate(self.value * other.value, math.hypot(self.log_error, other.log_error))

    def scaled(self, factor: float) -> Estimate:
        """This number times a constant."""
        return Estimate(self.value * factor, self.log_error)

    def interval(self) -> tuple[float, float]:
        """Where the true value lies with 95 % confidence."""
        spread = math.exp(1.96 * self.log_error)
        return self.value / spread, self.value * spread

    def to_json(self) -> dict[str, float]:
        """Value and interval."""
        low, high = self.interval()
        return {"value": self.value, "low": low, "high": high}

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.value:.2f} [{low:.2f}, {high:.2f}]"


def mean_of(samples: Sequence[float]) -> Estimate:
    """The mean of independent positive samples."""
    mean = float(np.mean(samples))
    return Estimate(mean, float(np.std(samples, ddof=1)) / math.sqrt(len(samples)) / mean)


@dataclass(frozen=True, slots=True)
class Simulated:
    """What many trees of one kind say about an estimator.

    Attributes:
        variance: Trace of the covariance of the gradient from one tree, at equal signal: of the
            estimate divided by `signal`.
        signal: The share of the true gradient that the estimate has in expectation, measured. An
            unbiased estimate has 1, and is not divided by what chance made of it.
        returns: Finished episodes in a tree.
        cost: Environment steps in a tree.
        advantage: Mean square of the advantage of the first decision after a branch point, or where
            there would be one.
        trees: How many there were.
    """

    variance: Estimate
    signal: Estimate
    returns: float
    cost: Estimate
    advantage: Estimate
    trees: Sequence[Group]


def simulate(
    sampler: Sampler, estimator: Estimator, *, decisive: int, trees: int, unbiased: bool = True
) -> Simulated:
    """Sample trees and measure; `decisive` is the depth of the decision that is looked at."""
    dice = Dice(np.random.default_rng(0))
    exact = exact_gradient(sampler.mdp, sampler.policy)
    sampled = [sampler(dice) for _ in range(trees)]
    gradients: list[Array] = []
    squares: list[float] = []
    for tree in sampled:
        estimator(tree)
        gradients.append(estimated_gradient(tree, sampler.policy))
        squares.append(
            float(np.mean([s.advantage**2 for s in tree.steps() if s.depth == decisive]))
        )
    mean = np.mean(gradients, axis=0)
    norm = float(np.square(exact).sum())
    signals = [float((gradient * exact).sum()) / norm if norm else 1.0 for gradient in gradients]
    signal = mean_of(signals)
    bessel = trees / (trees - 1)
    spread = [float(np.square(gradient - mean).sum()) * bessel for gradient in gradients]
    variance = mean_of(spread)
    return Simulated(
        variance=variance if unbiased else variance / signal / signal,
        signal=signal,
        returns=float(np.mean([len(tree.returns()) for tree in sampled])),
        cost=mean_of([tree.env_steps() for tree in sampled]),
        advantage=mean_of(squares),
        trees=sampled,
    )


def known_from(trees: Sequence[Group]) -> Components | None:
    """What the learner would know from these trees."""
    anova = NestedAnova()
    anova.end_update(trees)
    return anova.known


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)),
            flush=True,
        )
