"""The numbers of a comparison: the table, the sentence above it, and where the time went."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandboxgym_learners.report.curves import Interval, Points, area_under, interval
from sandboxgym_learners.report.load import Run

Groups = Mapping[str, Sequence[Run]]


@dataclass(frozen=True, slots=True)
class Row:
    """An algorithm in the table.

    Attributes:
        algo: Its name.
        seeds: The seeds that were run.
        unfinished: How many of its runs have not reached their end.
        updates: Mean number of updates of a run.
        compute: Mean compute of a run.
        env_steps: Mean number of environment steps.
        returns: Mean number of finished episodes.
        restores: Mean number of restored snapshots.
        start: Success on the evaluation tasks before the first update.
        final: The same at the last evaluation.
        area: Mean success over the compute that all runs cover.
        variance_cost: Mean of gradient variance times cost of a tree.
        minutes: Mean wall time of a run.
    """

    algo: str
    seeds: list[int]
    unfinished: int
    updates: float
    compute: float
    env_steps: float
    returns: float
    restores: float
    start: Interval | None
    final: Interval | None
    area: Interval | None
    variance_cost: Interval | None
    minutes: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Mean seconds of a run of an algorithm, by what they were spent on."""

    algo: str
    policy: float
    environment: float
    restores: float
    learning: float
    evaluation: float
    other: float


def table(groups: Groups) -> list[Row]:
    """The rows of the table, one an algorithm."""
    end = matched_compute(groups)
    return [_row(algo, runs, end) for algo, runs in groups.items()]


def matched_compute(groups: Groups) -> float:
    """The compute up to which every run was evaluated; 0 where one never was."""
    ends = [
        max(run.points("eval_success").x, default=0.0) for runs in groups.values() for run in runs
    ]
    return min(ends, default=0.0)


def verdict(rows: Sequence[Row]) -> list[str]:
    """What the table says, in sentences, and what it cannot say."""
    finals = [(row, row.final) for row in rows if row.final is not None]
    if not finals:
        return ["No run was evaluated, so success cannot be compared."]
    ranked = sorted(finals, key=lambda pair: -pair[1].mean)
    solved = ", ".join(f"{row.algo.upper()} {_percent(final)}" for row, final in ranked)
    several = any(final.margin is not None for _, final in finals)
    brackets = " (in brackets the 90 % interval over seeds)" if several else ""
    sentences = [f"Evaluation tasks solved at the end: {solved}{brackets}."]
    sentences += _comparisons([(row.algo.upper(), final) for row, final in ranked])
    costs = [row.compute for row in rows]
    if max(costs) > 1.05 * min(costs):
        sentences.append(
            "The runs did not cost the same compute: read the curves at the same compute, or the "
            "column “Mean success”, which covers what all runs have in common."
        )
    unfinished = sum(row.unfinished for row in rows)
    if unfinished:
        sentences.append(f"{unfinished} of the runs had not reached their end.")
    return sentences


def costs(groups: Groups) -> list[Cost]:
    """Where the time of each algorithm went; the rest of the wall time is `other`."""
    result = []
    for algo, runs in groups.items():
        policy, env, restore, learn, evaluation, wall = (
            statistics.fmean(sum(getattr(row, column) for row in run.timings) for run in runs)
            for column in ("policy_s", "env_s", "restore_s", "learn_s", "eval_s", "wall_s")
        )
        other = max(0.0, wall - policy - env - restore - learn - evaluation)
        result.append(Cost(algo, policy, env, restore, learn, evaluation, other))
    return result


def _row(algo: str, runs: Sequence[Run], end: float) -> Row:
    evaluations = [points for run in runs if (points := run.points("eval_success")).x]
    products = [statistics.fmean(known) for run in runs if (known := variance_times_cost(run))]
    last = [run.updates[-1] for run in runs if run.updates]
    return Row(
        algo=algo,
        seeds=[run.seed for run in runs],
        unfinished=sum(not run.complete for run in runs),
        updates=_mean([row.update for row in last]),
        compute=_mean([row.compute for row in last]),
        env_steps=_mean([row.env_steps for row in last]),
        returns=_mean([row.returns for row in last]),
        restores=_mean([row.restores for row in last]),
        start=_interval([points.y[0] for points in evaluations if points.x[0] == 0]),
        final=_interval([points.y[-1] for points in evaluations]),
        area=_interval([area_under(points, end=end) for points in evaluations]),
        variance_cost=_interval(products),
        minutes=_mean([sum(row.wall_s for row in run.timings) / 60 for run in runs]),
    )


def variance_times_cost(run: Run) -> list[float]:
    """Gradient variance times what a tree cost, of every update where both are known."""
    products = [
        (row.compute, row.grad_variance * row.grad_cost)
        for row in run.updates
        if row.grad_variance is not None and row.grad_cost is not None
    ]
    return Points.of(products).y


_SAYS: Mapping[bool | None, str] = {
    None: "One seed cannot tell {} apart.",
    True: "The 90 % intervals of {} overlap: these seeds do not tell them apart.",
    False: "The 90 % intervals of {} do not overlap.",
}
"""By whether intervals overlap; None where it is not known."""


def _comparisons(ranked: Sequence[tuple[str, Interval]]) -> list[str]:
    """A sentence for all neighbours of a ranking of which the same is true."""
    pairs: dict[bool | None, list[str]] = {}
    for (first, one), (second, two) in itertools.pairwise(ranked):
        pairs.setdefault(one.overlaps(two), []).append(f"{first} and {second}")
    return [says.format("; ".join(pairs[key])) for key, says in _SAYS.items() if key in pairs]


def _percent(value: Interval) -> str:
    text = f"{100 * value.mean:.3g} %"
    if value.margin is None:
        return text
    low, high = 100 * max(0.0, value.low), 100 * min(1.0, value.high)
    return f"{text} ({low:.3g}–{high:.3g})"  # noqa: RUF001


def _interval(values: Sequence[float]) -> Interval | None:
    return interval(values) if values else None


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0
