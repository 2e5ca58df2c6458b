"""Places inside a tree that its sandbox could change at will, found without following anything.

A command in the sandbox owns the tree: it may have put a symbolic link where a folder of the
machine is to be shown at the next start. A path is therefore walked by descriptors, name by name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager


class PlaceError(OSError):
    """Something in a tree is not what it was, so that nothing can be mounted there."""


@contextmanager
def place(root: str, path: str, *, folder: bool) -> Iterator[int]:
    """A descriptor of a place in a tree, made where it is missing.

    Args:
        root: The tree.
        path: The place, as an absolute path inside the tree.
        folder: Whether the place is a folder or a file; all above it are folders.

    Raises:
        PlaceError: Something on the way is of another kind.
    """
    names = [name for name in path.split("/") if name]
    at = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for depth, name in enumerate(names, start=1):
            wants_folder = folder or depth < len(names)
            below = _enter(at, name, wants_folder)
            os.close(at)
            at = below
            if stat.S_ISDIR(os.fstat(at).st_mode) != wants_folder:
                raise PlaceError(
                    f"/{'/'.join(names[:depth])} was replaced inside the sandbox, and is where "
                    f"{path} is to be shown"
                )
        yield at
    finally:
        os.close(at)


def _enter(parent: int, name: str, folder: bool) -> int:
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=parent)
    except FileNotFoundError:
        here = f"/proc/self/fd/{parent}"  # a descriptor of this kind can be searched, not written
        writable = os.open(here, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if folder:
                os.mkdir(name, 0o755, dir_fd=writable)
            else:
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=writable))
        finally:
            os.close(writable)
        return os.open(name, flags, dir_fd=parent)
