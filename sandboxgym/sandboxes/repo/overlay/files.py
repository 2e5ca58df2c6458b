"""Reading and writing single files of a sandbox from outside, for graders.

The tree is its sandbox's: any link in a path is followed as a process inside would follow it, and
nothing but an ordinary file is opened.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from sandboxgym.sandboxes.repo.overlay import syscalls


class FileAccessError(OSError):
    """A path in a sandbox is no ordinary file, or one that is too large."""


def read(root: Path, path: str, limit: int) -> bytes:
    """The content of a file.

    Raises:
        FileAccessError: It is no ordinary file, or has more than `limit` bytes.
    """
    descriptor = _open(root, path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FileAccessError(f"{path} is no ordinary file, so it is not read")
        if status.st_size > limit:
            raise FileAccessError(
                f"{path} has {status.st_size} bytes, more than the {limit} that may be read"
            )
        return file.read(limit)


def write(root: Path, path: str, content: bytes, mode: int, user: int) -> None:
    """Write a new file in place of what a path names, a symbolic link included.

    Raises:
        FileAccessError: There is a folder of this name.
    """
    above, _, name = path.rstrip("/").rpartition("/")
    if name in ("", ".", ".."):
        raise FileAccessError(f"{path!r} names no file")
    folder = _open(root, above or "/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        new = f".new-{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(new, flags, 0o600, dir_fd=folder), "wb") as file:
            try:
                file.write(content)
                file.flush()
                os.fchown(file.fileno(), user, user)
                os.fchmod(file.fileno(), mode)
                os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(new, dir_fd=folder)
                raise
    except IsADirectoryError as error:
        raise FileAccessError(f"{path} is a folder, so it is not written over") from error
    finally:
        os.close(folder)


def _open(root: Path, path: str, flags: int) -> int:
    top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return syscalls.open_inside(top, path, flags)
    finally:
        os.close(top)
