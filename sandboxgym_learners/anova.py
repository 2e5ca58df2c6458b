"""Is branching worth it here? A running nested analysis of variance over the collected trees.

Returns of one task vary for two reasons: the histories up to the branch point differ (between), and
what follows one history differs (within). Forks see only the second, and pay for the history only
once. From the two variances, the two costs and the two shares of the score it follows what a tree
saves over independent episodes, and how many siblings are best.

An episode that ends before any branch point is a history with nothing left to follow it. In this
way every root counts, and the law of total variance holds for the point where a root branched *or
ended*: Var(G) = between + within.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields

from sandboxgym_learners.tree import Group, Segment


def predicted_efficiency(
    *, eta: float, remaining: float, prefix_score: float, roots: int, siblings: int, episodes: int
) -> float:
    """Variance times cost of the gradient from a tree, relative to independent episodes.

        [w·(η + (1-η)/K)·B/(B-1) + (1-w)·(1-η)/(K-1)] · (1 + (K-1)·f) / (N/(N-1))

    Below 1 branching pays. Exact for one branch point in every root if the returns do not depend on
    the actions. The more they do, the more a tree costs beyond this, above all with few siblings;
    `benchmarks/estimators.py` sets it beside measured ratios.

    Args:
        eta: η, the share of the variance of returns that the history explains.
        remaining: f, the share of an episode's cost that comes after the branch point.
        prefix_score: w, the share of Σ‖∇ log π‖² that comes before it.
        roots: B, members of the root group.
        siblings: K, members of the group at the branch point.
        episodes: N, group size of the independent episodes (RLOO) compared with.
    """
    before = prefix_score * (eta + (1 - eta) / siblings) * roots / (roots - 1)
    after = (1 - prefix_score) * (1 - eta) / (siblings - 1)
    cost = 1 + (siblings - 1) * remaining
    return (before + after) * cost / (episodes / (episodes - 1))


def best_siblings(
    *, between: float, within: float, prefix_cost: float, continuation_cost: float
) -> float:
    """K* = sqrt(within/between · prefix cost/continuation cost), the optimum of two-stage sampling.

    At least 1, where forks bring nothing; infinite where histories do not matter or forks are free.
    """
    if within <= 0 or prefix_cost <= 0:
        return 1.0
    if between <= 0 or continuation_cost <= 0:
        return math.inf
    return max(1.0, math.sqrt(within / between * prefix_cost / continuation_cost))


@dataclass(frozen=True, slots=True)
class Components:
    """What one tree says about variance, cost and score: unbiased estimates, or sums of such.

    Attributes:
        between: Variance between histories; below 0 by chance where it is small.
        within: Variance of the returns that follow one history.
        prefix_cost: Environment steps of an episode up to its first branch point.
        continuation_cost: Those after it.
        prefix_score: Σ‖∇ log π‖² of an episode up to its first branch point, as to the logits.
        continuation_score: That after it.
    """

    between: float = 0.0
    within: float = 0.0
    prefix_cost: float = 0.0
    continuation_cost: float = 0.0
    prefix_score: float = 0.0
    continuation_score: float = 0.0


def components(tree: Group) -> Components | None:
    """Analyse one tree; None if it has a single root or a group that lost all but one member.

    For a softmax over logits E‖∇ log π(a)‖² = E[1 - π(a)], so that the scores are estimated from
    the log-probabilities of the actions taken.
    """
    groups = [tree, *(root.branch for root in tree.members if root.branch is not None)]
    if any(len(group.members) < 2 for group in groups):
        return None
    roots = [_measure(root) for root in tree.members]
    mean = statistics.fmean
    return Components(
        between=statistics.variance([root.mean for root in roots])
        - mean([root.variance / root.draws for root in roots]),
        within=mean([root.variance for root in roots]),
        prefix_cost=mean([root.prefix_cost for root in roots]),
        continuation_cost=mean([root.continuation_cost for root in roots]),
        prefix_score=mean([root.prefix_score for root in roots]),
        continuation_score=mean([root.continuation_score for root in roots]),
    )


class NestedAnova:
    """Components of variance and of cost, averaged over updates with exponential forgetting.

    Attributes:
        memory: The share of its weight that what is known keeps when an update is added.
    """

    def __init__(self, memory: float = 0.95) -> None:
        if not 0 <= memory <= 1:
            raise ValueError(f"memory is {memory}; it must lie in [0, 1]")
        self.memory = memory
        self._trees = 0.0
        self._sums = Components()

    def end_update(self, trees: Sequence[Group]) -> None:
        """Take in the trees of an update.

        An update in which nothing branched tells nothing of forks and is left out, and so is a tree
        that `components` cannot analyse.
        """
        if not any(root.branch for tree in trees for root in tree.members):
            return
        found = [part for part in map(components, trees) if part is not None]
        if not found:
            return
        self._trees = self.memory * self._trees + len(found)
        self._sums = Components(
            *(
                self.memory * getattr(self._sums, field.name)
                + sum(getattr(part, field.name) for part in found)
                for field in fields(Components)
            )
        )

    @property
    def known(self) -> bool:
        """Whether any update has been taken in; until then the estimates below are None."""
        return self._trees > 0

    @property
    def between(self) -> float | None:
        """Variance between histories; below 0 by chance where it is small."""
        return self._sums.between / self._trees if self.known else None

    @property
    def within(self) -> float | None:
        """Variance of the returns that follow one history."""
        return self._sums.within / self._trees if self.known else None

    @property
    def eta(self) -> float | None:
        """η, the share of the variance that the history explains, in [0, 1].

        None as well where returns do not vary at all.
        """
        total = self._sums.between + self._sums.within
        return min(1.0, max(0.0, self._sums.between / total)) if total > 0 else None

    @property
    def remaining(self) -> float | None:
        """f, the share of an episode's environment steps that comes after the branch point."""
        return _share(self._sums.continuation_cost, self._sums.prefix_cost)

    @property
    def prefix_score(self) -> float | None:
        """w, the share of Σ‖∇ log π‖² that comes before the branch point, as to the logits."""
        return _share(self._sums.prefix_score, self._sums.continuation_score)

    def efficiency(self, *, roots: int, siblings: int, episodes: int) -> float | None:
        """What `predicted_efficiency` says here of one branch point; None while not known."""
        eta, remaining, prefix_score = self.eta, self.remaining, self.prefix_score
        if eta is None or remaining is None or prefix_score is None:
            return None
        return predicted_efficiency(
            eta=eta,
            remaining=remaining,
            prefix_score=prefix_score,
            roots=roots,
            siblings=siblings,
            episodes=episodes,
        )

    def best_siblings(self) -> float | None:
        """What `best_siblings` says here; None while not known."""
        if not self.known:
            return None
        return best_siblings(
            between=self._sums.between,
            within=self._sums.within,
            prefix_cost=self._sums.prefix_cost,
            continuation_cost=self._sums.continuation_cost,
        )

    def state_dict(self) -> dict[str, float]:
        """All that changes from update to update, as plain data for a checkpoint."""
        return {"trees": self._trees, **asdict(self._sums)}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on from a checkpoint that `state_dict` wrote."""
        parts = dict(state)
        self._trees = parts.pop("trees")
        self._sums = Components(**parts)


@dataclass(frozen=True, slots=True)
class _Root:
    """One root: the mean and sample variance of its draws of the return, costs and scores."""

    draws: int
    mean: float
    variance: float
    prefix_cost: float
    continuation_cost: float
    prefix_score: float
    continuation_score: float


def _measure(root: Segment) -> _Root:
    """Look at the first branch point of a root alone.

    Each member of the group there stands for one independent continuation: its path that follows
    the first member wherever it branches again.
    """
    paths = [list(_first_path(member)) for member in root.branch.members] if root.branch else [[]]
    returns = [root.own_reward() + sum(segment.own_reward() for segment in path) for path in paths]
    return _Root(
        draws=len(returns),
        mean=statistics.fmean(returns),
        variance=statistics.variance(returns) if len(returns) > 1 else 0.0,
        prefix_cost=len(root.steps),
        continuation_cost=statistics.fmean(
            sum(len(segment.steps) for segment in path) for path in paths
        ),
        prefix_score=_score([root]),
        continuation_score=statistics.fmean(_score(path) for path in paths),
    )


def _first_path(segment: Segment) -> Iterator[Segment]:
    while True:
        yield segment
        if segment.branch is None:
            return
        segment = segment.branch.members[0]


def _score(path: Iterable[Segment]) -> float:
    return sum(1 - math.exp(step.logprob) for segment in path for step in segment.steps)


def _share(part: float, rest: float) -> float | None:
    return part / (part + rest) if part + rest > 0 else None
