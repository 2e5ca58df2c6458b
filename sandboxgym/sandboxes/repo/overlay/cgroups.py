"""Total limits by control groups, where the machine lets us have some.

A sandbox gets a group of its own below the one that the owner is in, so that limits which are set
on the owner hold for it too. Groups have one manager each: we make some only below the root of what
we see, or below one that was handed to us. Both versions of the kernel's interface are known
(cgroup-v1 and cgroup-v2 of its documentation). Elsewhere the warden's watch and the limits of
single processes remain. Names of groups tell which keeper made them, so that the next one can
remove those of a keeper that was killed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "sandboxgym-"
_OWN_PROCESSES = 16  # of a warden, beside those of the sandbox
_EVENTS = {  # by limit: which file counts it, and in which line
    ("total_memory", 1): ("memory.oom_control", "oom_kill "),
    ("total_memory", 2): ("memory.events", "oom_kill "),
    ("processes", 1): ("pids.events", "max "),
    ("processes", 2): ("pids.events", "max "),
}
_CONTROLLERS = {"total_memory": "memory", "processes": "pids"}
_SETTINGS = {
    ("total_memory", 1): "memory.limit_in_bytes",
    ("total_memory", 2): "memory.max",
    ("processes", 1): "pids.max",
    ("processes", 2): "pids.max",
}


@dataclass(frozen=True)
class Parent:
    """A group that we are in, below which we may make some, for one kind of limit."""

    limit: str
    version: int
    folder: Path


class Group:
    """The control groups of one sandbox; this process, and what it starts, belongs to them.

    Args:
        below: What `parents` found before this process was in a group of ours.
        name: Of the sandbox, together with what tells its keeper.
        memory: Bytes that all processes and all that they wrote may take together.
        processes: How many there may be.
    """

    def __init__(self, below: Sequence[Parent], name: str, memory: int, processes: int) -> None:
        values = {"total_memory": memory, "processes": processes + _OWN_PROCESSES}
        self._made: list[tuple[Parent, Path]] = []
        for parent in below:
            folder = parent.folder / f"{_PREFIX}{name}"
            try:
                folder.mkdir()
                (folder / _SETTINGS[parent.limit, parent.version]).write_text(
                    str(values[parent.limit])
                )
                (folder / "cgroup.procs").write_text("0")
            except OSError:  # not ours to make, after all: single processes stay limited
                with contextlib.suppress(OSError):
                    folder.rmdir()
            else:
                self._made.append((parent, folder))
        self._counts = self._count()

    @property
    def limits(self) -> list[str]:
        """Which limits are kept by groups."""
        return [parent.limit for parent, _ in self._made]

    def reached(self) -> list[str]:
        """Which limits processes have run into since this was asked last."""
        before, self._counts = self._counts, self._count()
        return [limit for limit, count in self._counts.items() if count > before.get(limit, 0)]

    def _count(self) -> dict[str, int]:
        counts = {}
        for parent, folder in self._made:
            name, start = _EVENTS[parent.limit, parent.version]
            for line in (folder / name).read_text().splitlines():
                if line.startswith(start):
                    counts[parent.limit] = int(line.removeprefix(start))
        return counts


def keeper_name() -> str:
    """What tells the groups of this keeper from those of any other that was or will be."""
    return f"{os.getpid()}-{_started(os.getpid())}"


def remove(below: Sequence[Parent], name: str) -> None:
    """Remove the groups of a sandbox whose processes have ended.

    Raises:
        OSError: Some have not.
    """
    for parent in below:
        with contextlib.suppress(FileNotFoundError):
            (parent.folder / f"{_PREFIX}{name}").rmdir()


def remove_abandoned(below: Sequence[Parent]) -> None:
    """Remove the groups of keepers that ended without doing so."""
    for parent in below:
        with contextlib.suppress(OSError):
            for folder in parent.folder.glob(f"{_PREFIX}*-*-*"):
                pid, started = folder.name.removeprefix(_PREFIX).split("-")[:2]
                if _started(int(pid)) != started:
                    with contextlib.suppress(OSError):
                        folder.rmdir()


def parents() -> Iterator[Parent]:
    """The groups below which to make ours, one for each kind of limit that can be kept here."""
    mounts = _mounts()
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for limit, controller in _CONTROLLERS.items():
            version = 1 if controllers else 2
            mounted = mounts.get(controller if controllers else "")
            if mounted is None or (controllers and controller not in controllers.split(",")):
                continue
            root, place = mounted
            own = Path(place, os.path.relpath(path, root))
            if not _handed_to_us(own, path) or (version == 2 and not _given(own, controller)):
                continue
            yield Parent(limit, version, own)


def _handed_to_us(folder: Path, path: str) -> bool:
    """Whether nobody else manages the groups below a group."""
    if not os.access(folder, os.W_OK):
        return False
    if path == "/" or folder.stat().st_uid == os.geteuid() != 0:
        return True
    try:
        return os.getxattr(folder, "trusted.delegate") == b"1"  # as systemd marks it
    except OSError:
        return False


def _given(folder: Path, controller: str) -> bool:
    """Whether groups below a group of version 2 have a controller, or can be given it."""
    subtree = folder / "cgroup.subtree_control"
    try:
        if controller not in subtree.read_text().split():
            subtree.write_text(f"+{controller}")
    except OSError:  # not ours, or it holds processes itself
        return False
    return True


def _mounts() -> dict[str, tuple[str, str]]:
    """By controller, "" for version 2: which group is mounted where."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        root, place = before.split()[3:5]
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            found[""] = (root, place)
        elif kind == "cgroup":
            found |= dict.fromkeys(options.split(","), (root, place))
    return found


def _started(pid: int) -> str | None:
    """When a process was started, in ticks since the machine was; None where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return None
