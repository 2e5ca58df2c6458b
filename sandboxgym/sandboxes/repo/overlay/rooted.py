"""The tree of a sandbox: layers, and what is shown of the machine and of other moments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.repo.overlay import syscalls
from sandboxgym.sandboxes.repo.overlay.places import place
from sandboxgym.sandboxes.repo.overlay.shelf import Shelf, Written

SHARED_MEMORY = "/dev/shm"
HIDDEN = "/proc"
"""Where the tree's shared memory is shown to bubblewrap, which covers it with what belongs there.

Not by its own path, on which there could be links: bubblewrap would follow them.
"""


class Rooted:
    """A tree that can be mounted.

    Args:
        shelf: Where its layers are.
        binds: Folders and files of the machine that it shows: (there, inside).
        hidden: Folders inside that are shown empty.
        views: Trees of other moments that it shows; what is written there is forgotten.

    Attributes:
        root: Where it is mounted.
        shared_memory: Where bubblewrap finds what is to be its /dev/shm.
    """

    def __init__(
        self,
        shelf: Shelf,
        binds: list[list[str]],
        hidden: list[str],
        views: list[dict[str, Any]],
    ) -> None:
        self.shelf = shelf
        self.binds = binds
        self.hidden = hidden
        self.views = [(view, shelf.new_written()) for view in views]
        self.root, self._nothing = shelf.own / "merged", shelf.own / "nothing"
        for folder in (self.root, self._nothing):
            folder.mkdir()
        self.shared_memory = f"{self.root}{HIDDEN}"

    def mount(self, layers: Sequence[str], top: Written) -> None:
        """Mount layers with a writable one above them, and inside all that is shown there."""
        root = str(self.root)
        with place(root, "/", folder=True) as here:
            self.shelf.mount(here, self.shelf.base, layers, top)
        for source, target in self.binds:
            with place(root, target, folder=Path(source).is_dir()) as here:
                syscalls.bind_read_only(source, here)
        for target in self.hidden:
            with place(root, target, folder=True) as here:
                syscalls.bind_read_only(str(self._nothing), here)
        for view, scratch in self.views:
            with place(root, view["target"], folder=True) as here:
                self.shelf.mount(here, view["base"], view["layers"], scratch)
        with place(root, SHARED_MEMORY, folder=True) as memory:
            self._give(memory)
            with place(root, HIDDEN, folder=True) as here:
                syscalls.attach(syscalls.clone_mount(memory), here)

    def unmount(self) -> None:
        """Take away what is mounted, as far as it is, and with it what is mounted inside."""
        if self.root.is_mount():
            syscalls.unmount(str(self.root))

    def _give(self, here: int) -> None:
        """Make the sandbox's user the owner of a folder."""
        user = self.shelf.privileges.user
        if os.fstat(here).st_uid != user:
            os.chown(f"/proc/self/fd/{here}", user, user)
