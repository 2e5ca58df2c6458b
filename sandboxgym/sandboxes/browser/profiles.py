"""The folders in which a browser keeps what it thinks it needs, and how they come to be removed.

A folder is locked by the process that its browser belongs to. One that nobody holds was left behind
by a process that was killed, and is removed when the next browser starts.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "sandboxgym-chromium-"
_LOCK = "lock"


@dataclass(frozen=True)
class Profile:
    """One folder.

    Attributes:
        folder: Where it is.
        lock: The descriptor that holds it.
    """

    folder: Path
    lock: int

    @property
    def words(self) -> Path:
        """Where the browser's complaints go."""
        return self.folder / "stderr"

    def last_words(self) -> str:
        """The last complaint."""
        lines = self.words.read_text("utf-8", "replace").splitlines()
        return lines[-1] if lines else "it said nothing"

    def remove(self) -> None:
        """Remove the folder."""
        os.close(self.lock)
        shutil.rmtree(self.folder, ignore_errors=True)


def make() -> Profile:
    """A new folder; those that were left behind are removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        lock = _lock(left)
        if lock is not None:
            Profile(left, lock).remove()
    folder = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}"))  # not to be found before it is locked
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    named = folder.with_name(folder.name.lstrip("."))
    folder.rename(named)
    return Profile(named, lock)


def _lock(folder: Path) -> int | None:
    """Hold a folder that nobody holds."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # another user's, or being removed
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
