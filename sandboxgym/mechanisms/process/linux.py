"""The system calls that Python has no function for."""

from __future__ import annotations

import ctypes
import os
import signal

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_NOSUID, MS_NODEV = 0x2, 0x4
MS_REC, MS_PRIVATE = 0x4000, 0x40000
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def become_subreaper() -> None:
    """Become the parent of all descendants whose own parents end."""
    _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Be killed when the thread that forked this process ends."""
    _call("prctl", _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def unshare(flags: int) -> None:
    """Leave the namespaces that are shared with the parent process."""
    _call("unshare", flags)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    """Mount a file system, or change how a mounted one is shared."""
    _call("mount", _text(source), _text(target), _text(kind), ctypes.c_ulong(flags), _text(options))


def enter_mounts(descriptor: int) -> None:
    """Enter the mount namespace that a descriptor stands for; the working folder becomes its root.

    Python has a function for it since 3.12.
    """
    _call("setns", descriptor, CLONE_NEWNS)


def _text(value: str | None) -> bytes | None:
    return None if value is None else os.fsencode(value)


def _call(name: str, *args: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc[name](*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
