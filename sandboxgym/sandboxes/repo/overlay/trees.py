"""Walking and deleting trees that a sandbox made: of any depth, and never through a link.

Python's own functions recurse, so that a few thousand nested folders end them; and a path of the
machine ends at 4095 bytes, which a tree in a sandbox need not.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path


class DepthError(OSError):
    """A path is longer than the machine takes, so that what it names cannot be reached."""


def walk(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All nodes below a folder by their names in it, sorted, each folder before its content.

    Raises:
        DepthError: Folders are nested too deep.
    """
    todo = [""]
    while todo:
        above = todo.pop()
        folders = []
        for entry in _entries(folder, above):
            name = f"{above}{entry.name}"
            yield name, entry
            if entry.is_dir(follow_symlinks=False):
                folders.append(f"{name}/")
        todo += reversed(folders)


def _entries(folder: Path, name: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder / name) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise DepthError(
            error.errno, f"folders are nested too deep in the tree ({len(name)} characters)"
        ) from error


def remove(folder: Path) -> None:
    """Delete a tree. Nested folders are first moved up, so that no path grows long.

    Nothing new is made for that: where a disk is full, deleting is the way out.
    """
    prefix, moved = f".trash-{os.urandom(8).hex()}-", 0
    waiting = _children(folder)
    while waiting:
        current = waiting.pop()
        for entry in _children(current):
            moved += 1
            waiting.append(entry.rename(folder / f"{prefix}{moved}"))
        current.rmdir()
    folder.rmdir()


def _children(folder: Path) -> list[Path]:
    """The folders in a folder, when all else in it is deleted."""
    folders = []
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            folders.append(entry)
        else:
            entry.unlink()
    return folders


def remove_if_there(folder: Path) -> None:
    """Delete a tree that may be gone already."""
    if folder.exists():
        remove(folder)
