"""A watch over files that Python code changes outside of the private folder.

A fork has its own memory and its own private folder; any other file is shared by all forks. A
change made to one by a library written in C is not seen here, unless the file is still open.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from sandboxgym.core.errors import UncapturedStateError

_FOR_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATH_OF = {  # audit event -> positions of the changed path and of the descriptor of its folder
    "os.rename": (0, 2),
    "os.remove": (0, 1),
    "os.rmdir": (0, 1),
    "os.truncate": (0, None),
    "os.mkdir": (0, 2),
    "os.link": (1, 3),
    "os.symlink": (1, 2),
}
_CREATES = ("os.mkdir", "os.link", "os.symlink")  # and change nothing where there is something
_HARMLESS = ("/dev/null/", "/dev/tty/", "/proc/")


class WriteWatch:
    """Remembers the first file outside of `folder` that was changed since `forget`."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        self.changed: str | None = None
        sys.addaudithook(self._saw)

    def forget(self) -> None:
        """Start anew: what was written until now is the same for all forks from here."""
        self.changed = None

    def check(self) -> None:
        """Refuse to fork where a file was changed that the forks share."""
        if self.changed is not None:
            raise UncapturedStateError(
                f"the environment changed {self.changed}, which forks would share: let it write "
                f"to the temporary folder (tempfile.gettempdir(), here {self.folder}), which is "
                "copied, or use mechanism='replay'"
            )

    def _saw(self, event: str, args: tuple[Any, ...]) -> None:
        if self.changed is not None:
            return
        if event == "open":
            if isinstance(args[2], int) and args[2] & _FOR_WRITING:
                self.changed = self._outside(args[0], None)
        elif event in _PATH_OF:
            path, folder = _PATH_OF[event]
            where = self._outside(args[path], None if folder is None else args[folder])
            # Where nothing is there to be changed, the call fails and changes nothing.
            if where is not None and os.path.lexists(where) != (event in _CREATES):
                self.changed = where
        elif event == "sqlite3.connect" and args[0] not in ("", ":memory:"):
            self.changed = self._outside(args[0], None)

    def _outside(self, path: Any, folder: int | None) -> str | None:
        """The whole of a path that leads out of the private folder, or None."""
        if isinstance(path, int):  # an open file; `descriptors` looks at those
            return None
        try:
            name = os.fsdecode(path)
            if folder is not None and folder >= 0:
                name = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name)
            parent, leaf = os.path.split(os.path.abspath(name))
            whole = os.path.join(os.path.realpath(parent), leaf)
        except (OSError, TypeError, ValueError):
            return None  # no such folder, or no path at all: the call itself will say so
        if "__pycache__" in whole or f"{whole}/".startswith((self.folder + "/", *_HARMLESS)):
            return None
        return whole
