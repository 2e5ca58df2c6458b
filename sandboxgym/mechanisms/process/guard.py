"""What a fork would lose or share: threads, child processes, shared memory, timers.

Open files are in `descriptors.py`, files written by name in `writes.py`.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from pathlib import Path

from sandboxgym.core.errors import UncapturedStateError

_SHARED = re.compile(r"^\S+ .w.s \S+ \S+ \S+ *(.*)$", re.MULTILINE)  # a line of /proc/self/maps
_TIMERS = {"ITIMER_REAL": signal.ITIMER_REAL, "ITIMER_VIRTUAL": signal.ITIMER_VIRTUAL}


def check_process() -> None:
    """Refuse to fork a process that a fork would not copy whole.

    Raises:
        UncapturedStateError: Something of this process would be lost in a fork, or shared with it.
    """
    _check_threads()
    _check_children()
    _check_mappings()
    _check_signals()


def _check_threads() -> None:
    tasks = [task.name for task in Path("/proc/self/task").iterdir()]
    if len(tasks) == 1:
        return
    own = str(os.getpid())
    python = {str(t.native_id): f"Python thread {t.name!r}" for t in threading.enumerate()}
    names = [python.get(task, f"native thread {_name(task)!r}") for task in tasks if task != own]
    raise UncapturedStateError(
        f"the environment runs {len(names)} more thread(s) ({', '.join(sorted(names)[:5])}), which "
        "a fork would lose: end them before snapshot() (libraries that compute in threads have a "
        "setting for one thread), or use mechanism='replay'"
    )


def _check_children() -> None:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return
    names = ", ".join(sorted(_name_of_child(pid) for pid in children()))
    raise UncapturedStateError(
        f"the environment runs child processes ({names}), which a fork would not copy: end them, "
        "and wait for them, before snapshot(), or use mechanism='replay'"
    )


def _check_mappings() -> None:
    shared = _SHARED.search(Path("/proc/self/maps").read_text(errors="replace"))
    if shared is not None:
        raise UncapturedStateError(
            f"the environment has writable shared memory ({shared[1] or 'without a name'}), which "
            "forks would go on sharing: keep the data in private memory, or use "
            "mechanism='replay'"
        )


def _check_signals() -> None:
    for name, timer in _TIMERS.items():
        if signal.getitimer(timer)[0]:
            raise UncapturedStateError(
                f"the environment has a running timer ({name}), which a fork would lose: stop it "
                "before snapshot(), or use mechanism='replay'"
            )
    if signal.getsignal(signal.SIGCHLD) is None:
        raise UncapturedStateError(
            "the environment has a handler for SIGCHLD that Python does not know, and each fork "
            "would call it: remove it before snapshot(), or use mechanism='replay'"
        )


def children() -> list[int]:
    """All child processes of this one, those included that ended and were not waited for."""
    own = str(os.getpid())
    pids = [folder.name for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    return [int(pid) for pid in pids if _parent(pid) == own]


def _parent(pid: str) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:  # it ended meanwhile
        return None
    return stat.rpartition(")")[2].split()[1]


def _name_of_child(pid: int) -> str:
    return f"{Path(f'/proc/{pid}/comm').read_text(errors='replace').strip()!r} (pid {pid})"


def _name(task: str) -> str:
    return Path(f"/proc/self/task/{task}/comm").read_text(errors="replace").strip()
