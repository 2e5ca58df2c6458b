"""Learning curves as a picture: success over compute, and what a method has over RLOO by pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sandboxgym_learners.report.curves import Points, band
from sandboxgym_learners.report.load import Run

WINDOW = 3
"""Evaluations that are averaged, since one is noisy."""


def draw(groups: Mapping[str, Sequence[Run]], title: str, path: Path) -> None:
    """Write a picture of one world; needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4))
    curves = {method: smooth(runs) for method, runs in groups.items()}
    for number, (method, runs) in enumerate(curves.items()):
        colour = f"C{number}"
        mean = band(list(runs.values()))
        if mean is not None:
            left.plot(mean.x, mean.mean, color=colour, label=method)
        if method == "rloo" or "rloo" not in curves:
            right.axhline(0, color="grey", linewidth=1)
            continue
        over = band(differences(runs, curves["rloo"]))
        if over is not None:
            right.plot(over.x, over.mean, color=colour, label=method)
            if over.low and over.high:
                right.fill_between(over.x, over.low, over.high, color=colour, alpha=0.12)
    left.set_ylabel(f"success, mean over seeds and {WINDOW} evaluations")
    right.set_ylabel("over rloo, pairs of one seed, 90 % bands")
    for panel in (left, right):
        panel.set_xlabel("compute, in environment steps")
        if panel.get_legend_handles_labels()[0]:
            panel.legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def smooth(runs: Sequence[Run]) -> dict[int, Points]:
    """The success curve of each seed."""
    return {run.seed: run.points("eval_success").smoothed(WINDOW) for run in runs}


def differences(runs: Mapping[int, Points], others: Mapping[int, Points]) -> list[Points]:
    """For each seed of both: one curve minus the other, over the compute that both cover."""
    found = []
    for seed in runs.keys() & others.keys():
        one, other = runs[seed], others[seed]
        x = [place for place in one.x if other.x[0] <= place <= other.x[-1]]
        y = np.interp(x, one.x, one.y) - np.interp(x, other.x, other.y)
        found.append(Points(x, y.tolist()))
    return found
