"""Run jobs of `verdicts` in plain folders, by the Python of the tests."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from sandboxgym.sandboxes.repo.swebench.parsers.pytest_logs import parse_pytest
from sandboxgym.sandboxes.repo.swebench.plan import Runner, TestPlan
from sandboxgym.sandboxes.repo.swebench.verdicts import Job, Verdicts, job_of, read

QUIET_PYTEST = ("-rA", "-p", "no:cacheprovider")
UNITTEST = ("-m", "unittest", "-v")


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def plan(
    runner: Runner,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    files: tuple[str, ...] = (),
) -> TestPlan:
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return TestPlan(runner, arguments, {**alone, **(environment or {})}, (), files)


def run(
    folder: Path, what: TestPlan, python: str = sys.executable, user: int | None = None
) -> tuple[Job, str]:
    """The job, and what its command printed."""
    job = job_of(what, str(folder), shlex.quote(python))
    done = subprocess.run(
        ["bash", "-c", job.command],
        input=job.stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        user=user,
        check=False,
    )
    return job, done.stdout.decode("utf-8", "replace")


def verdicts(folder: Path, what: TestPlan) -> Verdicts:
    job, output = run(folder, what)
    return read(job, what, output, parse_pytest)


def with_pytest(folder: Path, files: Mapping[str, str], *more: str) -> Verdicts:
    write(folder, files)
    return verdicts(folder, plan(Runner.PYTEST, *QUIET_PYTEST, *more))


def with_unittest(folder: Path, files: Mapping[str, str], *modules: str) -> Verdicts:
    write(folder, files)
    return verdicts(folder, plan(Runner.UNITTEST, *UNITTEST, *modules))
