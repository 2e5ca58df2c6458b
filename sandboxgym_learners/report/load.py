"""Read what training runs left behind, see `runlog`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandboxgym_learners.report.curves import Points
from sandboxgym_learners.runlock import RunDirectoryError
from sandboxgym_learners.tree import Group, TreeFormatError
from sandboxgym_learners.updates import Timing, Update, read_timings, read_updates


@dataclass(frozen=True)
class Run:
    """One run directory, without its trees.

    Attributes:
        folder: The directory.
        algo: Its algorithm.
        seed: Its seed.
        budget: The compute that it may spend.
        config: Its whole configuration.
        versions: What it ran with.
        updates: The rows of `updates.csv`.
        timings: The rows of `timings.csv`.
    """

    folder: Path
    algo: str
    seed: int
    budget: float
    config: dict[str, Any]
    versions: dict[str, Any]
    updates: list[Update]
    timings: list[Timing]

    @property
    def complete(self) -> bool:
        """Whether the run reached its end."""
        return (self.folder / "policy").is_dir()

    def points(self, column: str) -> Points:
        """A column of `updates.csv` against compute, where it is known."""
        return Points.of([(row.compute, getattr(row, column)) for row in self.updates])

    def tree_files(self) -> list[Path]:
        """The kept trees, in the order of their updates."""
        return sorted((self.folder / "trees").glob("[0-9]*.json"))


@dataclass(frozen=True)
class SavedTree:
    """A tree that a run kept, and where it comes from."""

    algo: str
    seed: int
    update: int
    task: str
    tree: Group


def load_run(folder: Path) -> Run:
    """Read a run directory.

    Raises:
        RunDirectoryError: Something is missing in it or is not what a run writes.
    """
    path = folder / "config.json"
    content = _json(path)
    try:
        config, versions = dict(content["config"]), dict(content["versions"])
        algo, seed, budget = str(config["algo"]), int(config["seed"]), float(config["budget"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunDirectoryError(f"{path} is not the configuration of a run: {error!r}") from error
    return Run(
        folder=folder,
        algo=algo,
        seed=seed,
        budget=budget,
        config=config,
        versions=versions,
        updates=read_updates(folder),
        timings=read_timings(folder),
    )


def load_tree(run: Run, path: Path) -> SavedTree:
    """Read a tree that the run kept.

    Raises:
        RunDirectoryError: The file is not what a run writes.
    """
    content = _json(path)
    try:
        tree = Group.from_json(content["tree"])
        return SavedTree(run.algo, run.seed, int(content["update"]), str(content["task"]), tree)
    except (KeyError, TypeError, ValueError, TreeFormatError) as error:
        raise RunDirectoryError(f"{path} holds no tree of a run: {error!r}") from error


def by_algorithm(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each algorithm, in the order in which they are given."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.algo, []).append(run)
    return groups


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise RunDirectoryError(f"{path} is missing: is it part of a run directory?") from error
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"{path} cannot be read: {error}") from error
