"""What collected trees say about variance and cost: a running nested analysis of variance.

Returns of one task vary for two reasons: the histories up to the branch point differ (between), and
what follows one history differs (within). Forks see only the second, and pay for the history only
once. Beside the two variances, the variance of a gradient needs to know how returns and scores go
together: an episode that failed is often one that did something unlikely. So there are also mean
products of squared deviations and squared scores. `efficiency` makes predictions of them.

An episode that ends before any branch point is a history with nothing left to follow it. In this
way every root counts, and the law of total variance holds for the point where a root branched *or
ended*: Var(G) = between + within.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields

from sandboxgym_learners.tree import Group, Segment, Step


@dataclass(frozen=True, slots=True)
class Components:
    """Variance, cost and score: unbiased estimates from one tree, or sums or means of such.

    G is the return of an episode and V its mean given the history x up to the branch point. S and
    T are squared scores, Σ ‖∇ log π‖² as to the logits: of the history, and of what follows.

    Attributes:
        between: Var(V); below 0 by chance where it is small.
        within: E Var(G | x).
        prefix_cost: Environment steps of the history.
        continuation_cost: Those of what follows.
        prefix_score: E S.
        continuation_score: E T.
        prefix_signal: E (V₁ - V₂)² (S₁ + S₂)/2 of two independent histories.
        prefix_noise: E Var(G | x) S.
        fork_judged: E (G - V)² T: a continuation's own deviation, with its own score.
        fork_baseline: E Var(G | x) E(T | x): another continuation's.
        episode: E (G₁ - G₂)² (S₁ + T₁ + S₂ + T₂)/2 of two independent episodes.
    """

    between: float = 0.0
    within: float = 0.0
    prefix_cost: float = 0.0
    continuation_cost: float = 0.0
    prefix_score: float = 0.0
    continuation_score: float = 0.0
    prefix_signal: float = 0.0
    prefix_noise: float = 0.0
    fork_judged: float = 0.0
    fork_baseline: float = 0.0
    episode: float = 0.0

    @property
    def eta(self) -> float | None:
        """η, the share of the variance that the history explains; None where nothing varies."""
        total = self.between + self.within
        return min(1.0, max(0.0, self.between / total)) if total > 0 else None

    @property
    def remaining(self) -> float | None:
        """f, the share of an episode's environment steps that comes after the branch point."""
        total = self.prefix_cost + self.continuation_cost
        return self.continuation_cost / total if total > 0 else None


def components(tree: Group) -> Components | None:
    """Analyse one tree; None if it has a single root or a group that lost all but one member."""
    groups = [tree, *(root.branch for root in tree.members if root.branch is not None)]
    if any(len(group.members) < 2 for group in groups):
        return None
    roots = [_look_at(root) for root in tree.members]
    forks = [_deviations(root) for root in roots]
    pairs = [(one, two) for i, one in enumerate(roots) for two in roots[:i]]
    return Components(
        between=statistics.variance([root.mean for root in roots])
        - _mean([root.noise for root in roots]),
        within=_mean([root.variance for root in roots]),
        prefix_cost=_mean([root.prefix_steps for root in roots]),
        continuation_cost=_mean([root.steps for root in roots]),
        prefix_score=_mean([root.prefix_score for root in roots]),
        continuation_score=_mean([_mean(root.scores) for root in roots]),
        prefix_signal=_mean([_between_histories(one, two) for one, two in pairs]),
        prefix_noise=_mean([root.variance * root.prefix_score for root in roots]),
        fork_judged=_mean([judged for judged, _ in forks]),
        fork_baseline=_mean([baseline for _, baseline in forks]),
        episode=_mean([_between_episodes(one, two) for one, two in pairs]),
    )


class NestedAnova:
    """The components, averaged over updates with exponential forgetting.

    Attributes:
        memory: The share of its weight that what is known keeps in an update.
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
        that `components` cannot analyse. What is known gets older all the same.
        """
        branched = any(root.branch for tree in trees for root in tree.members)
        found = [part for tree in trees if branched and (part := components(tree)) is not None]
        self._trees = self.memory * self._trees + len(found)
        self._sums = Components(
            *(
                self.memory * getattr(self._sums, field.name)
                + sum(getattr(part, field.name) for part in found)
                for field in fields(Components)
            )
        )

    @property
    def known(self) -> Components | None:
        """The running means; None until an update has been taken in."""
        if not self._trees:
            return None
        return Components(**{name: sum_ / self._trees for name, sum_ in asdict(self._sums).items()})

    def state_dict(self) -> dict[str, float]:
        """All that changes from update to update, as plain data for a checkpoint."""
        return {"trees": self._trees, **asdict(self._sums)}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on from a checkpoint that `state_dict` wrote."""
        parts = dict(state)
        self._trees = parts.pop("trees")
        self._sums = Components(**parts)


def squared_score(step: Step) -> float:
    """‖∇ log π(action)‖² as to the logits: (1 - p)² + Σ over the other actions of their p².

    The others are not written down one by one. They are taken to be equally likely, as many as
    the entropy says there are: exact if they are, or if there is one. A text is judged by its
    tokens, each as if there were very many others.
    """
    if step.written_logprobs:
        return sum((1 - math.exp(logprob)) ** 2 for logprob in step.written_logprobs)
    taken = math.exp(step.logprob)
    rest = 1 - taken
    if rest < 1e-9:
        return 0.0
    of_choice = -taken * step.logprob - rest * math.log(rest)
    of_others = max(0.0, (step.entropy - of_choice) / rest)
    return rest**2 * (1 + math.exp(-of_others))


@dataclass(frozen=True, slots=True)
class _Root:
    """A root: its history, and a return and a score for each continuation of it.

    `mean` and `variance` are those of the returns, `noise` the variance of that mean.
    """

    prefix_steps: int
    prefix_score: float
    steps: float
    returns: Sequence[float]
    scores: Sequence[float]
    mean: float
    variance: float

    @property
    def noise(self) -> float:
        return self.variance / len(self.returns)


def _look_at(root: Segment) -> _Root:
    """Look at the first branch point of a root alone.

    Each member of the group there stands for one independent continuation: its path that follows
    the first member wherever it branches again.
    """
    members = root.branch.members if root.branch else []
    paths = [list(_first_path(member)) for member in members] or [[]]
    reward = root.own_reward()
    returns = [reward + sum(step.reward for step in path) for path in paths]
    return _Root(
        prefix_steps=len(root.steps),
        prefix_score=sum(map(squared_score, root.steps)),
        steps=_mean([len(path) for path in paths]),
        returns=returns,
        scores=[float(sum(map(squared_score, path))) for path in paths],
        mean=_mean(returns),
        variance=statistics.variance(returns) if len(returns) > 1 else 0.0,
    )


def _first_path(segment: Segment) -> Iterator[Step]:
    yield from segment.steps
    while segment.branch is not None:
        segment = segment.branch.members[0]
        yield from segment.steps


def _deviations(root: _Root) -> tuple[float, float]:
    """E (G - V)² T and E (G - V)² E T, unbiased, from independent pairs of return and score.

    Deviations from the sample mean mix the two in known shares. From two pairs alone only their
    mean can be told, and is taken for both.
    """
    count = len(root.returns)
    apart = root.variance * _mean(root.scores)
    if count <= 2:
        return apart, apart
    deviations = [(value - root.mean) ** 2 for value in root.returns]
    together = _mean([d * score for d, score in zip(deviations, root.scores, strict=True)])
    baseline = ((count - 1) * apart - together * count / (count - 1)) / (count - 2)
    return count * apart - (count - 1) * baseline, baseline


def _between_histories(one: _Root, two: _Root) -> float:
    apart = (one.mean - two.mean) ** 2 - one.noise - two.noise
    return apart * (one.prefix_score + two.prefix_score) / 2


def _between_episodes(one: _Root, two: _Root) -> float:
    above = one.prefix_score + two.prefix_score
    pairs = [
        (g - h) ** 2 * (above + s + t)
        for g, s in zip(one.returns, one.scores, strict=True)
        for h, t in zip(two.returns, two.scores, strict=True)
    ]
    return _mean(pairs) / 2


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
