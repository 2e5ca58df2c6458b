"""Many training runs, a few at a time, each in a process and a run directory of its own.

What is finished stays, and what was interrupted is gone on with: the same jobs can be given again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from tqdm import tqdm  # type: ignore[import-untyped]

from sandboxgym.core.errors import SandboxGymError

Setting = str | int | float | tuple[str, ...]

WARM_START = 0.15
"""The share of a run's progress that its warm start makes."""

POLL_SECONDS = 0.5


class JobError(SandboxGymError, RuntimeError):
    """A training run failed, or its directory holds one with another budget."""


@dataclass(frozen=True)
class Job:
    """A training run.

    Attributes:
        name: What it is called while it runs.
        folder: Its run directory.
        seed: Its seed.
        budget: Its compute, in units of one environment step.
        settings: All other options of `sandboxgym_learners.train`, without their dashes.
    """

    name: str
    folder: Path
    seed: int
    budget: float
    settings: Mapping[str, Setting]

    def command(self) -> list[str]:
        """The command that starts it, or goes on with it."""
        return [
            *(sys.executable, "-m", "sandboxgym_learners.train"),
            *("--seed", str(self.seed), "--budget", str(self.budget)),
            *("--out", str(self.folder), "--resume", "--no-tensorboard"),
            *options(self.settings),
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
        """Raise `JobError` if the directory holds a run with another budget."""
        path = self.folder / "config.json"
        if not path.is_file():
            return
        budget = json.loads(path.read_text("utf-8"))["config"]["budget"]
        if budget != self.budget:
            raise JobError(
                f"{self.folder} was trained with a budget of {budget:,.0f}, not "
                f"{self.budget:,.0f}: go on with it by that budget, or choose another --out"
            )


def options(settings: Mapping[str, Setting]) -> Iterator[str]:
    """The words that give settings on a command line."""
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


def train_all(jobs: Sequence[Job], *, at_once: int, deadline: float | None = None) -> bool:
    """Run what is not finished yet, showing how far all of it is.

    Args:
        jobs: The runs, in the order in which they are started.
        at_once: How many run at the same time, one thread each.
        deadline: When to stop, in the seconds of `time.monotonic`. What runs then is ended, and
            gone on with when the same jobs are given again.

    Returns:
        Whether all of them are finished.

    Raises:
        JobError: A run failed. The others are ended, and can be gone on with.
    """
    for job in jobs:
        job.check()
    waiting = [job for job in jobs if not job.finished()]
    running: list[tuple[Job, subprocess.Popen[bytes]]] = []
    with _progress(jobs) as bar, _ended_at_the_end(running):
        while waiting or running:
            if deadline is not None and time.monotonic() >= deadline:
                return False
            while waiting and len(running) < at_once:
                job = waiting.pop(0)
                running.append((job, job.start()))
            time.sleep(POLL_SECONDS)
            for job, process in list(running):
                if process.poll() is not None:
                    running.remove((job, process))
                    _check_end(job, process.returncode)
            _show(bar, jobs, running)
    return True


def end_like_an_interrupt() -> None:
    """Let SIGTERM end this program as Ctrl-C does: with its runs, and not before them.

    A run that outlives its program would write in one directory with the one that goes on there.
    """
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(signum: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _check_end(job: Job, status: int) -> None:
    if status == 0 and job.finished():
        return
    output = job.log.read_text("utf-8", errors="replace").strip().splitlines()[-15:]
    raise JobError(
        f"{job.name} with seed {job.seed} ended with status {status}. The end of {job.log}:\n"
        + "\n".join(f"  {line}" for line in output)
    )


@contextmanager
def _ended_at_the_end(running: list[tuple[Job, subprocess.Popen[bytes]]]) -> Iterator[None]:
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
    often = 0.1 if sys.stderr.isatty() else 30.0
    return tqdm(total=len(jobs), initial=begun, bar_format=bar, mininterval=often)


def _show(bar: Any, jobs: Sequence[Job], running: Sequence[tuple[Job, Any]]) -> None:
    # A run that goes on from its last checkpoint repeats a little: the bar waits meanwhile.
    bar.update(max(0.0, sum(job.progress() for job in jobs) - bar.n))
    finished = sum(job.finished() for job in jobs)
    names = ", ".join(f"{job.name} {job.seed}" for job, _ in running)
    bar.set_postfix_str(
        f"{finished} of {len(jobs)} runs done" + (f", now {names}" if names else ""),
        refresh=sys.stderr.isatty(),
    )
