"""How the numbers on the page came about: the machine, the versions, the commit."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from sandboxgym_learners.report.load import Run

T = TypeVar("T")


def machine() -> str:
    """Where this code runs: the processor, the cores it may use, the system and the Python."""
    cores = usable_cores()
    python = platform.python_version()
    return f"{_processor()}, {cores} cores, {platform.system()}, Python {python}"


def usable_cores() -> int:
    """How many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def setting(runs: Sequence[Run]) -> str:
    """What was trained on and how much of it, where all runs agree about it."""
    world = _agreed([_world(run.config) for run in runs])
    budget = _agreed([run.budget for run in runs])
    seeds = _agreed([sum(other.algo == run.algo for other in runs) for run in runs])
    return "; ".join(
        [
            "several worlds" if world is None else world,
            f"seeds of each algorithm: {'not the same number' if seeds is None else seeds}",
            _agreed([evaluated_on(run.config) for run in runs])
            or "evaluated on several sets of tasks",
            f"budget of each run: {'not the same' if budget is None else format(budget, ',.0f')}",
        ]
    )


def evaluated_on(config: dict[str, Any]) -> str:
    """Whether success was measured on tasks that the training saw; readers have to know."""
    world = config.get("world")
    if not isinstance(world, dict) or "eval_tasks" not in world:
        return "evaluated on tasks that are not named"
    same = world.get("held_out") == world.get("train")
    seen = same and world["eval_tasks"] <= world.get("train_tasks", 0)
    return f"evaluated on {world['eval_tasks']} {'of the training' if seen else 'held-out'} tasks"


def _agreed(values: Sequence[T]) -> T | None:
    """The value that all have; None where they differ."""
    return values[0] if all(value == values[0] for value in values) else None


def versions(runs: Sequence[Run]) -> dict[str, str]:
    """What the runs ran with; several versions of one package are all listed."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for name, version in run.versions.items():
            found.setdefault(name, []).append(str(version))
    return {name: " and ".join(sorted(set(several))) for name, several in found.items()}


def commit() -> str | None:
    """The commit of the source tree that this code runs from; None where there is none."""
    here = Path(__file__).parent
    described = _git(here, "describe", "--always", "--dirty", "--abbrev=12")
    tracked = _git(here, "ls-files", "--error-unmatch", Path(__file__).name)
    return described if described and tracked else None


def _world(config: dict[str, Any]) -> str:
    world = config.get("world")
    if not isinstance(world, dict):
        return "an environment that is not named"
    arguments = world.get("arguments")
    named = [str(argument) for argument in arguments] if isinstance(arguments, list) else []
    return " ".join([str(world.get("env")), *named])


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text("utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
