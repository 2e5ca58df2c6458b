"""Counts of what can leak, as far as this system lets itself be asked."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from sandboxgym.conformance import processes

PYTHON_MEMORY = "bytes of Python's memory"
TOTAL_MEMORY = "bytes of memory of all processes"
SETTLE_WITHIN = 2.0
DOCKER_WITHIN = 5.0

Usage: TypeAlias = dict[str, int]


class Meter:
    """Counts what this process and all that it started use.

    Args:
        observer: The process whose descendants are counted: this one, or the one that takes on the
            orphans.
        folder: Where temporary files of this process are.
    """

    def __init__(self, observer: int, folder: Path) -> None:
        self._observer = observer
        self._folder = folder
        self._docker = _docker()

    def read(self, expected: Usage | None = None) -> Usage:
        """The counts, once what ends by itself has ended.

        Args:
            expected: Counts that need not be waited for.
        """
        deadline = time.monotonic() + SETTLE_WITHIN
        usage = self._count()
        while expected and time.monotonic() < deadline and _more(usage, expected):
            time.sleep(0.05)
            usage = self._count()
        return usage

    def _count(self) -> Usage:
        gc.collect()
        usage = {
            PYTHON_MEMORY: tracemalloc.get_traced_memory()[0],
            "temporary files": sum(1 for _ in self._folder.rglob("*")),
            "threads": threading.active_count(),
        }
        if processes.can_be_seen():
            me = os.getpid()
            others = [p for p in processes.descendants(self._observer) if p.pid != me]
            pids = [me, *(p.pid for p in others if not p.zombie)]
            usage |= {
                "child processes": len(others),
                "open files": processes.open_files(pids),
                "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
                TOTAL_MEMORY: processes.own_memory(pids),
            }
        if self._docker:
            usage["containers"] = _containers(self._docker)
        return usage


def _more(usage: Usage, expected: Usage) -> bool:
    """Whether there is more than expected of something that can be counted one by one."""
    memory = (PYTHON_MEMORY, TOTAL_MEMORY)
    return any(usage[what] > expected[what] for what in usage if what not in memory)


def _docker() -> str | None:
    """The docker client, where it has a server to talk to."""
    docker = shutil.which("docker")
    if docker is None:
        return None
    try:
        _containers(docker)
    except (subprocess.SubprocessError, OSError):
        return None
    return docker


def _containers(docker: str) -> int:
    listing = subprocess.run(
        [docker, "ps", "--all", "--quiet"],
        capture_output=True,
        text=True,
        timeout=DOCKER_WITHIN,
        check=True,
    )
    return len(listing.stdout.split())


@contextmanager
def metered(observer: int) -> Iterator[Meter]:
    """Trace memory, and give this process and its children a folder for temporary files."""
    before, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="sandboxgym-check-") as folder, _traced_memory():
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        try:
            yield Meter(observer, Path(folder))
        finally:
            tempfile.tempdir = before
            if variable is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = variable


@contextmanager
def _traced_memory() -> Iterator[None]:
    running = tracemalloc.is_tracing()
    if not running:
        tracemalloc.start()
    try:
        yield
    finally:
        if not running:
            tracemalloc.stop()
