"""The runs of a report: found, read, named by their variant, sorted."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

from sandboxgym_learners.report.labels import labelled
from sandboxgym_learners.report.load import Run, load_run
from sandboxgym_learners.runlock import RunDirectoryError


def load_runs(folders: Iterable[Path]) -> list[Run]:
    """Read several runs, and sort them by algorithm and seed.

    Args:
        folders: Run directories, or folders that hold some.

    Raises:
        RunDirectoryError: There are none, one of them is no run directory, or two of them are the
            same seed of the same algorithm with the same settings.
    """
    found = [load_run(run) for folder in folders for run in run_folders(folder)]
    if not found:
        raise RunDirectoryError("no run directories were given: a report needs at least one")
    runs = sorted(labelled(found), key=lambda run: (run.algo, run.seed))
    for run, following in itertools.pairwise(runs):
        if (run.algo, run.seed) == (following.algo, following.seed):
            raise RunDirectoryError(
                f"{run.folder} and {following.folder} are both {run.algo} with seed {run.seed}: "
                "a band needs different seeds, so leave one of them out"
            )
    return runs


def run_folders(folder: Path) -> list[Path]:
    """The folder itself, or the runs in it where it is none but holds some."""
    if (folder / "config.json").exists():
        return [folder]
    return sorted(path.parent for path in folder.glob("*/config.json")) or [folder]
