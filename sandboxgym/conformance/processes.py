"""The processes that an environment started, and the memory they take, as /proc tells it.

Where there is no /proc (not Linux), no process is seen and no memory counted.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_SET_CHILD_SUBREAPER, _SET_DEATH_SIGNAL = 36, 1  # <sys/prctl.h>
_END_WITHIN = 5.0


@dataclass(frozen=True)
class Process:
    """One process.

    Attributes:
        pid: Its id.
        parent: The id of its parent.
        name: What it runs, in at most 15 characters.
        zombie: Whether it has ended and nobody has asked how.
    """

    pid: int
    parent: int
    name: str
    zombie: bool


def can_be_seen() -> bool:
    """Whether this system lets itself be asked about processes."""
    return (_PROC / "self" / "stat").is_file()


def descendants(pid: int) -> list[Process]:
    """All children of a process, their children and so on, in whatever session they are."""
    children: dict[int, list[Process]] = {}
    for process in _all():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    queue = [pid]
    while queue:
        own = children.get(queue.pop(), [])
        found += own
        queue += [process.pid for process in own]
    return found


def memory(pids: Iterable[int]) -> int:
    """Bytes that processes take together, what they share counted once."""
    return sum(_field(pid, "Pss") for pid in pids)


def own_memory(pids: Iterable[int]) -> int:
    """Bytes that processes take together beside mapped files."""
    return sum(_field(pid, "Pss_Anon") + _field(pid, "Pss_Shmem") for pid in pids)


def memory_at_most(pids: Iterable[int]) -> int:
    """An upper bound of `memory` that is found out quickly."""
    total = 0
    for pid in pids:
        try:
            pages = (_PROC / str(pid) / "statm").read_text().split()[1]
        except (OSError, IndexError):  # it ended meanwhile
            continue
        total += int(pages) * os.sysconf("SC_PAGE_SIZE")
    return total


def open_files(pids: Iterable[int]) -> int:
    """How many descriptors processes have open."""
    return sum(len(_listing(_PROC / str(pid) / "fd")) for pid in pids)


def kill_descendants(pid: int) -> None:
    """End all processes below one, and those that they start meanwhile."""
    deadline = time.monotonic() + _END_WITHIN
    while time.monotonic() < deadline:
        alive = [process for process in descendants(pid) if not process.zombie]
        for process in alive:
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        reap_children()
        if not alive:
            return
        time.sleep(0.005)


def reap_children(but: int | None = None) -> None:
    """Let children of this process that have ended go, orphans that it took on included."""
    me = os.getpid()
    for process in descendants(me):
        if process.zombie and process.parent == me and process.pid != but:
            os.waitpid(process.pid, os.WNOHANG)


def fork() -> int:
    """`os.fork`, where the caller knows that other threads do not live on in the child."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        return os.fork()


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none is out of sight."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """Be killed when the parent ends."""
    _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if can_be_seen():  # Linux
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _all() -> list[Process]:
    found = []
    for entry in _listing(_PROC):
        if not entry.isdigit():
            continue
        try:
            text = (_PROC / entry / "stat").read_text(errors="replace")
        except OSError:  # it ended meanwhile
            continue
        name = text[text.index("(") + 1 : text.rindex(")")]  # may itself have brackets
        state, parent = text[text.rindex(")") + 2 :].split()[:2]
        found.append(Process(int(entry), int(parent), name, state in "ZX"))
    return found


def _listing(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are all that is wanted
    except OSError:  # it ended meanwhile, or is another user's
        return []


def _field(pid: int, name: str) -> int:
    """A number of bytes in a process's summary of its memory."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:  # it ended meanwhile, or is another user's
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":")), 0)
