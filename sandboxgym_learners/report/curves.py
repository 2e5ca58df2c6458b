"""From the rows of several runs to a mean curve with a band over seeds.

Runs of one algorithm are evaluated at different amounts of compute, so each is first read at the
same places, by linear interpolation between its own points. The band is the 90 % confidence
interval of the mean over seeds by Student's t at every place: with few seeds it is wide, as it has
to be. A single seed has no band.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

PLACES = 121
"""At how many amounts of compute a curve is read."""

_T_95 = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812)
_Z_95 = 1.6448536


@dataclass(frozen=True, slots=True)
class Points:
    """What one run measured: values `y` at amounts of compute `x`, ascending."""

    x: list[float]
    y: list[float]

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float | None]]) -> Points:
        """Keep the pairs whose value is known and finite."""
        known = [(x, y) for x, y in pairs if y is not None and math.isfinite(y)]
        return cls([x for x, _ in known], [y for _, y in known])

    def smoothed(self, window: int) -> Points:
        """Every value replaced by the mean of the `window` values around it (fewer at the ends)."""
        before, after = (window - 1) // 2, window // 2
        mean = [
            statistics.fmean(self.y[max(0, index - before) : index + after + 1])
            for index in range(len(self.y))
        ]
        return Points(self.x, mean)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over seeds, and how far the 90 % interval reaches to both sides; None for one seed."""

    mean: float
    margin: float | None

    @property
    def low(self) -> float:
        """Lower end of the interval; the mean itself where there is none."""
        return self.mean - (self.margin or 0.0)

    @property
    def high(self) -> float:
        """Upper end of the interval; the mean itself where there is none."""
        return self.mean + (self.margin or 0.0)

    def overlaps(self, other: Interval) -> bool | None:
        """Whether the two intervals have a value in common; None where one of them is missing."""
        if self.margin is None or other.margin is None:
            return None
        return self.low <= other.high and other.low <= self.high


def interval(values: Sequence[float]) -> Interval:
    """The mean of independent values and its 90 % confidence interval."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Interval(mean, None)
    error = statistics.stdev(values) / math.sqrt(len(values))
    return Interval(mean, _t_95(len(values) - 1) * error)


@dataclass(frozen=True, slots=True)
class Band:
    """A mean curve over seeds; `low` and `high` are None where there is one seed only."""

    x: list[float]
    mean: list[float]
    low: list[float] | None
    high: list[float] | None

    def map(self, change: Callable[[float], float]) -> Band:
        """The same with every height changed by a monotone function."""
        return Band(
            x=self.x,
            mean=[change(y) for y in self.mean],
            low=self.low and [change(y) for y in self.low],
            high=self.high and [change(y) for y in self.high],
        )


def band(runs: Sequence[Points]) -> Band | None:
    """The curve of several runs over the compute that all of them cover; None if there is none."""
    runs = [run for run in runs if run.x]
    if not runs:
        return None
    start, end = max(run.x[0] for run in runs), min(run.x[-1] for run in runs)
    if end < start:
        return None
    places = np.linspace(start, end, PLACES)
    read = np.array([np.interp(places, run.x, run.y) for run in runs])
    intervals = [interval(column) for column in read.T.tolist()]
    several = len(runs) > 1
    return Band(
        x=places.tolist(),
        mean=[place.mean for place in intervals],
        low=[place.low for place in intervals] if several else None,
        high=[place.high for place in intervals] if several else None,
    )


def area_under(run: Points, *, end: float) -> float:
    """Mean height of a curve from its first point to `end`: the area divided by the width.

    A curve that stops earlier is continued at its last value.
    """
    places = np.linspace(run.x[0], max(end, run.x[0]), PLACES)
    heights = np.interp(places, run.x, run.y)
    return float((heights[1:] + heights[:-1]).mean() / 2)


def _t_95(freedom: int) -> float:
    """The 95 % quantile of Student's t: a table, then its expansion around the normal quantile."""
    if freedom <= len(_T_95):
        return _T_95[freedom - 1]
    z = _Z_95
    first = (z**3 + z) / (4 * freedom)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return z + first + second
