"""What branching saves: the gradient variance and the cost of trees that were not collected.

The gradient of a tree is a mean over B roots of a part for the history and a part for what follows.
Each part is a leave-one-out statistic of independent members, so its variance is known from second
moments (`anova.Components`), whatever B and K:

    history    (a_V + a_W/K) / B  +  (c_V + c_W/K) / (B (B - 1))
    forks      (a_T + c_T/(K - 1)) / (B K)
    N episodes (RLOO)          a / N  +  c / (N (N - 1))

a multiplies a member's squared deviation with its own squared score, c that of another one. Where
returns do not depend on actions a = c, and variance times cost relative to RLOO becomes

    [w·(η + (1-η)/K)·B/(B-1) + (1-w)·(1-η)/(K-1)] · (1 + (K-1)·f) / (N/(N-1))

with η and f as in `Components` and w the history's share of the squared score.

What is left out: the squared length of the true gradient, which an episode's variance is a little
smaller by, so that branching looks better than it is by about the signal's share of RLOO's
variance; that decisions share the parameters of a network; and that a history's two roots cannot
tell a_V from c_V, so that c_V is taken as Var(V) · E S over all tasks. `benchmarks/estimators.py`
sets predictions beside measured ratios.
"""

from __future__ import annotations

from sandboxgym_learners.algorithms import Shape
from sandboxgym_learners.anova import Components


def cost(parts: Components, shape: Shape) -> float:
    """Expected environment steps of a tree with one branch point a root, or with none."""
    siblings = shape.siblings if shape.branches else 1
    return shape.roots * (parts.prefix_cost + siblings * parts.continuation_cost)


def variance(parts: Components, shape: Shape) -> float:
    """Trace of the covariance of a tree's gradient as to the logits; for two roots or more."""
    roots, siblings = shape.roots, shape.siblings
    if not shape.branches:
        score = parts.prefix_score + parts.continuation_score
        judged, baseline = _split(parts.episode, (parts.between + parts.within) * score)
        return judged / roots + baseline / (roots * (roots - 1))
    judged, baseline = _split(parts.prefix_signal, parts.between * parts.prefix_score)
    judged += parts.prefix_noise / siblings
    baseline += parts.within * parts.prefix_score / siblings
    history = judged / roots + baseline / (roots * (roots - 1))
    forks = max(0.0, parts.fork_judged) + max(0.0, parts.fork_baseline) / (siblings - 1)
    return history + forks / (roots * siblings)


def efficiency(parts: Components, shape: Shape, *, episodes: int) -> float | None:
    """Variance times cost of a tree, relative to RLOO with so many episodes.

    Below 1 branching pays. Only the first branch point of each root is looked at. None where
    nothing varies.
    """
    alone = Shape(episodes)
    product = variance(parts, alone) * cost(parts, alone)
    return variance(parts, shape) * cost(parts, shape) / product if product > 0 else None


def _split(both: float, baseline: float) -> tuple[float, float]:
    """Tell a from c, given a + c and c; estimates may contradict each other by chance."""
    both = max(0.0, both)
    baseline = min(max(0.0, baseline), both)
    return both - baseline, baseline
