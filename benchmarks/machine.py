"""What benchmarks ask of the machine: processor time and memory of this process and all below."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Any

from sandboxgym.conformance import processes


def describe() -> dict[str, Any]:
    """What figures depend on beside the code."""
    return {
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def below() -> set[int]:
    """The ids of all processes below this one."""
    return {process.pid for process in processes.descendants(os.getpid())}


def cpu_below() -> float:
    """Seconds of processor time of all processes below this one."""
    return sum(cpu_seconds(pid) for pid in below())


def cpu_seconds(pid: int) -> float:
    """Seconds of a process, in nanoseconds' steps, with those of its children that ended."""
    folder = Path(f"/proc/{pid}")
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        threads = [(task / "schedstat").read_text() for task in (folder / "task").iterdir()]
    except OSError:
        return 0.0
    own = sum(int(thread.split()[0]) for thread in threads) / 1e9
    return own + sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")


class Stopwatch:
    """Seconds since it was made, of three kinds."""

    def __init__(self) -> None:
        self._below = cpu_below()  # looking at all processes takes time too: outside of the others
        self._own = time.process_time()
        self._wall = time.perf_counter()

    def read(self) -> tuple[float, float, float]:
        """On the wall; processor time of this process; of all below."""
        wall, own = time.perf_counter() - self._wall, time.process_time() - self._own
        return wall, own, cpu_below() - self._below
