"""Which curves the page shows, and their data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sandboxgym_learners.report.curves import Band, Points, band
from sandboxgym_learners.report.load import Run

Groups = Mapping[str, Sequence[Run]]


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: what it plots against compute for every algorithm.

    Attributes:
        title: Its heading.
        note: What is plotted, and how to read it.
        columns: The columns of `updates.csv` whose product is plotted.
        share: Whether the values are shares, shown in per cent; no band leaves 0 to 1.
        log: Whether the axis and the mean over seeds are logarithmic; values that are not positive
            are left out.
        smooth: Whether the values of single updates are noisy and averaged over neighbours.
        line: A value that is marked by a line, and what it means.
        chosen: Whether the values are settings that a run may choose anew for every update; where
            none did, there is no chart.
    """

    title: str
    note: str
    columns: tuple[str, ...]
    share: bool = False
    log: bool = False
    smooth: bool = True
    line: tuple[float, str] | None = None
    chosen: bool = False


SUCCESS = Chart(
    "Success",
    "Share of the evaluation tasks solved, against what training has cost so far: environment "
    "steps, and generated tokens at their price. Evaluations are free.",
    ("eval_success",),
    share=True,
    smooth=False,
)

VARIANCE = (
    Chart(
        "Gradient variance at equal cost",
        "Trace of the covariance of one tree's gradient times what a tree costs; the mean over "
        "seeds is geometric. Lower is better: half as much means that half the compute gives a "
        "gradient as exact.",
        ("grad_variance", "grad_cost"),
        log=True,
    ),
    Chart(
        "Gradient variance of one tree",
        "The same without the cost. A larger tree has a lower variance and costs more.",
        ("grad_variance",),
        log=True,
    ),
)

BRANCHING = (
    Chart(
        "Entropy",
        "Mean entropy of a decision in nats. At 0 the policy always does the same, and siblings "
        "no longer differ.",
        ("entropy",),
    ),
    Chart(
        "Groups with a single action",
        "Of the branch points, the share whose siblings all began with the same action.",
        ("same_action_share",),
        share=True,
    ),
    Chart(
        "Constant groups",
        "Of all groups, roots included, the share whose members returned the same. They teach "
        "nothing.",
        ("constant_share",),
        share=True,
    ),
    Chart(
        "η: variance between prefixes",
        "Running share of the variance of returns that the shared prefix explains. The formula of "
        "the efficiency calls it ρ.",  # noqa: RUF001
        ("eta",),
        share=True,
        smooth=False,
    ),
    Chart(
        "f: steps after the branch point",
        "Running share of an episode's steps that comes after its first branch point, and so is "
        "paid by every sibling.",
        ("remaining",),
        share=True,
        smooth=False,
    ),
    Chart(
        "Predicted efficiency",
        "Variance times cost of a tree relative to independent episodes, predicted from running "
        "estimates. Below 1 branching pays.",
        ("predicted_efficiency",),
        smooth=False,
        line=(1.0, "independent episodes"),
    ),
    Chart(
        "B: roots",
        "Independent episodes of a task, as chosen for each update.",
        ("roots",),
        smooth=False,
        chosen=True,
    ),
    Chart(
        "K: siblings",
        "Members of the groups below the roots, where an update branched.",
        ("siblings",),
        smooth=False,
        chosen=True,
    ),
    Chart(
        "M: branch points",
        "How many a backbone could have, as chosen for each update; 0 where it did not branch.",
        ("max_branches",),
        smooth=False,
        chosen=True,
    ),
    Chart(
        "Variance explained by the critic",
        "Of the variance of the returns of an update, the share that the critic had foreseen.",
        ("value_explained",),
    ),
    Chart(
        "Success while training",
        "Estimated from the collected trees, on training tasks.",
        ("success",),
        share=True,
    ),
)


def chart_data(chart: Chart, groups: Groups) -> dict[str, Any] | None:
    """A chart with its curves; None where there is nothing to tell."""
    if chart.chosen and not any(_changes(chart, run) for runs in groups.values() for run in runs):
        return None
    series = []
    for algo, runs in groups.items():
        measured = {run.seed: _points(chart, run) for run in runs}
        mean = _band(chart, list(measured.values()))
        if mean is None:
            continue
        seeds = [{"seed": seed, **asdict(points)} for seed, points in measured.items()]
        series.append({"algo": algo, **asdict(mean), "seeds": seeds})
    if not series:
        return None
    return {
        "title": chart.title,
        "note": chart.note,
        "share": chart.share,
        "log": chart.log,
        "line": chart.line and {"value": chart.line[0], "label": chart.line[1]},
        "series": series,
    }


def _changes(chart: Chart, run: Run) -> bool:
    return len(set(_points(chart, run).y)) > 1


def _band(chart: Chart, runs: Sequence[Points]) -> Band | None:
    if chart.log:
        logarithms = band([Points(run.x, [math.log(y) for y in run.y]) for run in runs])
        return logarithms and logarithms.map(math.exp)
    mean = band(runs)
    return mean.map(lambda y: min(1.0, max(0.0, y))) if mean and chart.share else mean


def _points(chart: Chart, run: Run) -> Points:
    columns = [run.points(name) for name in chart.columns]
    values: dict[float, float] = dict(zip(columns[0].x, columns[0].y, strict=True))
    for column in columns[1:]:
        factor = dict(zip(column.x, column.y, strict=True))
        values = {x: y * factor[x] for x, y in values.items() if x in factor}
    if chart.log:
        values = {x: y for x, y in values.items() if y > 0}
    points = Points(list(values), list(values.values()))
    return points.smoothed(smoothing_window(run)) if chart.smooth else points


def smoothing_window(run: Run) -> int:
    """How many neighbouring updates are averaged where single ones are noisy."""
    return max(1, len(run.updates) // 12)
