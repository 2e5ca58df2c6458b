"""`python -m sandboxgym_learners.demo`: BPO and RLOO at equal compute, and a report about it.

Trains both on generated households, every seed in a process and a run directory of its own, two at
a time, one thread each. What is finished stays: the same command after an interruption goes on
where it was, and with more seeds adds the new ones.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.jobs import Job, Setting, end_like_an_interrupt, train_all
from sandboxgym_learners.report import load_runs, write_report

ALGORITHMS = ("bpo", "rloo")

COMPUTE_PER_MINUTE = 30_000.0
"""Of the budget of each of six runs, what a minute of the whole demo pays on two cores."""

SETTINGS: dict[str, Setting] = {
    "world.arguments": (
        "source=synthetic",
        "difficulty=easy",
        'task_types=["pick_and_place_simple"]',
    ),
    "world.horizon": 20,
    "world.held-out": ("split=train",),
    "world.train-tasks": 8,
    "world.eval-tasks": 8,
    "cloning.steps": 120,
    "cloning.tasks": 300,
    "learning.rate": 1e-3,
    "tree.per-update": 4,
    "eval-every": 5,
}
"""A world small enough to be learnt in minutes: eight houses, trained on and evaluated on."""

SHAPES: dict[str, dict[str, Setting]] = {
    "bpo": {"tree.roots": 4, "tree.siblings": 4},
    "rloo": {"tree.roots": 8},
}
"""What each algorithm collects from a task; the compute is the same for both."""


class DemoError(SandboxGymError, ValueError):
    """An option of the demo makes no sense."""


@dataclass(frozen=True)
class DemoConfig:
    """Train BPO and RLOO at equal compute on generated households, and write a report.

    Attributes:
        out: Where the report goes, and the runs below it. What is there already is gone on with.
        minutes: About how long six runs take on two cores. It sets the budget, not a deadline.
        budget: Compute of each run, in units of one environment step, instead of `minutes`.
        seeds: Runs of each algorithm.
        at_once: Runs at the same time, one thread each.
    """

    out: Path = Path("report")
    minutes: float = 10.0
    budget: float | None = None
    seeds: int = 3
    at_once: int = 2

    def __post_init__(self) -> None:
        for name in ("seeds", "at_once"):
            if getattr(self, name) < 1:
                raise DemoError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not self.compute > 0:
            raise DemoError(f"the budget is {self.compute}; it must be more than 0")

    @property
    def compute(self) -> float:
        """The budget of each run."""
        return self.minutes * COMPUTE_PER_MINUTE if self.budget is None else self.budget


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, write the report, and say where it is; gives the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        config = tyro.cli(DemoConfig, args=given, description=__doc__)
        jobs = [
            Job(
                name=algo,
                folder=config.out / "runs" / f"{algo}-{seed}",
                seed=seed,
                budget=config.compute,
                settings={"algo": algo, **SETTINGS, **SHAPES[algo]},
            )
            for seed in range(config.seeds)
            for algo in ALGORITHMS
        ]
        train_all(jobs, at_once=config.at_once)
        command = shlex.join(["python", "-m", "sandboxgym_learners.demo", *given])
        page = write_report(load_runs(job.folder for job in jobs), config.out, command=command)
    except SandboxGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from here", file=sys.stderr)
        return 130
    print(f"The report is in {page}\n  {page.resolve().as_uri()}")
    return 0


if __name__ == "__main__":
    end_like_an_interrupt()
    raise SystemExit(main())
