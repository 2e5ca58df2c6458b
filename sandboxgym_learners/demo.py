"""`python -m sandboxgym_learners.demo`: BPO and RLOO at equal compute, and a report about it.

Trains both on generated households, every seed in a process and a run directory of its own, two at
a time, one thread each. What is finished stays: the same command after an interruption goes on
where it was, and with more seeds adds the new ones.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import tyro
from tqdm import tqdm  # type: ignore[import-untyped]

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.report import load_runs, write_report

ALGORITHMS = ("bpo", "rloo")

COMPUTE_PER_MINUTE = 30_000.0
"""Of the budget of each of six runs, what a minute of the whole demo pays on two cores."""

WARM_START = 0.15
"""The share of a run's progress that its warm start makes."""

POLL_SECONDS = 0.5

SETTINGS: dict[str, str | int | float | tuple[str, ...]] = {
    "world.arguments": (
        "source=synthetic",
        "difficulty=easy",
        'task_types=["pick_and_place_simple"]',
        "max_episode_steps=20",
    ),
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

SHAPES = {"bpo": {"tree.roots": 4, "tree.siblings": 4}, "rloo": {"tree.roots": 8}}
"""What each algorithm collects from a task; the compute is the same for both."""


class DemoError(SandboxGymError, RuntimeError):
    """A run of the demo failed, or belongs to a demo with another budget."""


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


@dataclass(frozen=True)
class Job:
    """A run of the demo."""

    algo: str
    seed: int
    budget: float
    folder: Path

    def command(self) -> list[str]:
        """The command that starts it, or goes on with it."""
        return [
            *(sys.executable, "-m", "sandboxgym_learners.train"),
            *("--algo", self.algo, "--seed", str(self.seed), "--budget", str(self.budget)),
            *("--out", str(self.folder), "--resume", "--no-tensorboard"),
            *_options({**SETTINGS, **SHAPES[self.algo]}),
        ]

    def start(self) -> subprocess.Popen[bytes]:
        """Run the command; what it prints goes to a file beside its directory."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with self.log.open("wb") as log:
            return subprocess.Popen(
                self.command(), stdout=log, stderr=log, env={**os.environ, **one_thread}
            )

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return self.folder.with_name(f"{self.folder.name}.log")

    def finished(self) -> bool:
        """Whether it has spent its budget and kept the policy that came out."""
        return (self.folder / "policy").is_dir()

    def progress(self) -> float:
        """How far it is, from 0 to 1."""
        if self.finished():
            return 1.0
        compute = last_compute(self.folder)
        if compute is None:
            return 0.0
        return WARM_START + (1 - WARM_START) * min(1.0, compute / self.budget)

    def check(self) -> None:
        """Raise `DemoError` if the directory holds a run with another budget."""
        path = self.folder / "config.json"
        if not path.is_file():
            return
        budget = json.loads(path.read_text("utf-8"))["config"]["budget"]
        if budget != self.budget:
            raise DemoError(
                f"{self.folder} was trained with a budget of {budget:,.0f}, not "
                f"{self.budget:,.0f}: go on with it by --budget {budget:.0f}, or choose another "
                "--out"
            )


def _options(settings: dict[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        yield f"--{name}"
        yield from map(str, value if isinstance(value, tuple) else (value,))


def last_compute(folder: Path) -> float | None:
    """What a run has spent by its last complete row; None before the first."""
    path = folder / "updates.jsonl"
    if not path.is_file():
        return None
    rows = path.read_bytes().split(b"\n")[:-1]  # what follows the last line end is incomplete
    return float(json.loads(rows[-1])["compute"]) if rows else None


def train_all(jobs: Sequence[Job], *, at_once: int) -> None:
    """Run what is not finished yet, showing how far all of it is.

    Raises:
        DemoError: A run failed. The others are stopped, and can be gone on with.
    """
    for job in jobs:
        job.check()
    waiting = [job for job in jobs if not job.finished()]
    running: list[tuple[Job, subprocess.Popen[bytes]]] = []
    with _progress(jobs) as bar, _stopped_at_the_end(running):
        while waiting or running:
            while waiting and len(running) < at_once:
                job = waiting.pop(0)
                running.append((job, job.start()))
            time.sleep(POLL_SECONDS)
            for job, process in list(running):
                if process.poll() is not None:
                    running.remove((job, process))
                    _check_end(job, process.returncode)
            _show(bar, jobs, running)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, write the report, and say where it is; gives the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        config = tyro.cli(DemoConfig, args=given, description=__doc__)
        jobs = [
            Job(algo, seed, config.compute, config.out / "runs" / f"{algo}-{seed}")
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


def _check_end(job: Job, status: int) -> None:
    if status == 0 and job.finished():
        return
    output = job.log.read_text("utf-8", errors="replace").strip().splitlines()[-15:]
    raise DemoError(
        f"{job.algo} with seed {job.seed} ended with status {status}. The end of {job.log}:\n"
        + "\n".join(f"  {line}" for line in output)
    )


@contextmanager
def _stopped_at_the_end(running: list[tuple[Job, subprocess.Popen[bytes]]]) -> Iterator[None]:
    """Leave no run behind, whatever ends the block."""
    try:
        yield
    finally:
        for _, process in running:
            process.terminate()
        for _, process in running:
            process.wait()


def _progress(jobs: Sequence[Job]) -> Any:
    bar = "{percentage:3.0f}% |{bar}| {elapsed} < {remaining}{postfix}"
    begun = sum(job.progress() for job in jobs)
    return tqdm(total=len(jobs), initial=begun, bar_format=bar)


def _show(bar: Any, jobs: Sequence[Job], running: Sequence[tuple[Job, Any]]) -> None:
    # A run that goes on from its last checkpoint repeats a little: the bar waits meanwhile.
    bar.update(max(0.0, sum(job.progress() for job in jobs) - bar.n))
    finished = sum(job.finished() for job in jobs)
    names = ", ".join(f"{job.algo} {job.seed}" for job, _ in running)
    bar.set_postfix_str(
        f"{finished} of {len(jobs)} runs done" + (f", now {names}" if names else "")
    )


def _interrupt(signum: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)  # so that no run outlives the demo
    raise SystemExit(main())
