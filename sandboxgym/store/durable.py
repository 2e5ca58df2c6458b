"""Writing so that it lasts, and taking turns: the few system calls that the store rests on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandboxgym.core.errors import StoreError

try:
    import fcntl
except ImportError:  # not a POSIX system; a store in memory works without
    fcntl = None  # type: ignore[assignment]  # told apart where it is used


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file against all other threads and processes.

    The system frees it when its holder ends, however it ends.
    """
    if fcntl is None:
        raise StoreError(
            f"{path.parent} cannot be shared safely on this system, which has no flock: use "
            "SnapshotStore() without a directory"
        )
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_locked(descriptor: int) -> bool:
    """Whether another process holds the lock of an open file; takes it where none does."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


@contextmanager
def naming_failures(doing: str) -> Iterator[None]:
    """Turn what the system refuses (a full disk, say) into a `StoreError`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(
            f"{doing} failed: {reason}. What was stored before is still there; free some space or "
            "give the store another directory, then try again"
        ) from error


def write_file(path: Path, data: bytes) -> None:
    """Write a file in one move: after a crash it has its old content or its new one, in full."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            write_all(descriptor, data, 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_all(descriptor: int, data: bytes, offset: int) -> None:
    """Write all of `data` at an offset of a file."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view = view[written:]
        offset += written


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
