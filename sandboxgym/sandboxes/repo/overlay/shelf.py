"""The layers of a keeper's store, and the directories of one warden that become some."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandboxgym.sandboxes.repo.overlay import syscalls, travel, trees
from sandboxgym.sandboxes.repo.overlay.layers import Merge
from sandboxgym.sandboxes.repo.overlay.links import carry_links, linked_groups
from sandboxgym.sandboxes.repo.overlay.places import place
from sandboxgym.sandboxes.repo.overlay.unpacking import Unpacking

LAYERS, WARDENS = "layers", "wardens"
"""In a store: what is frozen, and for each warden what it works with."""


@dataclass(frozen=True)
class Privileges:
    """Who mounts, and as whom commands run.

    Attributes:
        root: Whether the keeper is the machine's root, which can do more with an overlay.
        user: The user and group of what runs in a sandbox and owns its files, seen from the keeper.
    """

    root: bool
    user: int


@dataclass(frozen=True)
class Written:
    """A writable directory of an overlay, with the one that the kernel works in."""

    folder: Path

    @property
    def files(self) -> Path:
        """What was written."""
        return self.folder / "files"

    @property
    def work(self) -> Path:
        """What the kernel needs beside it while it is mounted."""
        return self.folder / "work"


class Shelf:
    """Layers above one base, topmost first wherever several are named.

    Args:
        store: The directory that holds all layers.
        name: Of the warden, which is part of the names of its layers.
        base: What lies below them.
        links: Hard links in the base.
        privileges: What the warden can do.

    Attributes:
        own: A folder for what the warden works with.
        kept: Layers that were made since this was last cleared.
    """

    def __init__(
        self, store: Path, name: str, base: str, links: list[list[str]], privileges: Privileges
    ) -> None:
        self.frozen = store / LAYERS
        self.own = store / WARDENS / name
        self.own.mkdir(0o711)
        self.name = name
        self.base = base
        self.links = links
        self.privileges = privileges
        self.kept: list[str] = []
        self._made = 0

    def new_written(self) -> Written:
        """A new directory to be written to."""
        written = Written(self.own / str(self._made))
        self._made += 1
        for path in (written.folder, written.files, written.work):
            path.mkdir(0o711)
        os.chown(written.files, self.privileges.user, self.privileges.user)
        return written

    def new_top(self, layers: Sequence[str]) -> Written:
        """A new writable layer above some, in which files with several names are kept together.

        Every layer above the base holds all of those, so the topmost one has to be looked at.
        """
        below = self.frozen / layers[0] if layers else Path(self.base)
        top = self.new_written()
        try:
            groups = linked_groups(below) if layers else self.links
            carry_links(below, top.files, groups)
            status = below.lstat()
            top.files.chmod(stat.S_IMODE(status.st_mode))
            os.utime(top.files, ns=(status.st_atime_ns, status.st_mtime_ns))
        except BaseException:
            trees.remove(top.folder)
            raise
        return top

    def mount(self, here: int, base: str, layers: Sequence[str], top: Written) -> None:
        """Mount layers over a base at a place, with a directory that takes what is written."""
        below = os.open(base, os.O_PATH | os.O_DIRECTORY)
        try:  # a name of the base that says nothing: it can be read inside
            lower = [*(str(self.frozen / layer) for layer in layers), f"/proc/self/fd/{below}"]
            syscalls.mount_overlay(
                here, lower, str(top.files), str(top.work), privileged=self.privileges.root
            )
        finally:
            os.close(below)

    def keep(self, written: Written) -> str:
        """Make a layer of what was written; its name."""
        name = f"{self.name}.{written.folder.name}"
        written.files.rename(self.frozen / name)
        self.kept.append(name)
        return name

    def take_back(self, name: str, written: Written) -> None:
        """Make a layer what it was before it was kept."""
        (self.frozen / name).rename(written.files)
        self.kept.remove(name)

    def forget_kept(self, but: Sequence[str] = ()) -> None:
        """Remove the layers that were made since `kept` was cleared, except for some."""
        for name in [name for name in self.kept if name not in but]:
            self.kept.remove(name)
            trees.remove(self.frozen / name)

    def merged(self, names: Sequence[str]) -> Written:
        """One layer that says what several say together."""
        view = self.own / "view"
        view.mkdir()
        merged, scratch = self.new_written(), self.new_written()
        try:
            with place(str(view), "/", folder=True) as here:
                self.mount(here, self.base, names, scratch)
            try:
                merge = Merge(Path(self.base), view, merged.files, privileged=self.privileges.root)
                merge.run([self.frozen / name for name in names])
            finally:
                syscalls.unmount(str(view))
        except BaseException:
            trees.remove(merged.folder)
            raise
        finally:
            view.rmdir()
            trees.remove(scratch.folder)
        return merged

    def export(self, names: Sequence[str]) -> bytes:
        """What layers say together, as an archive."""
        merged = self.merged(names)
        try:
            return travel.pack(merged.files)
        finally:
            trees.remove(merged.folder)

    def import_(self, archive: bytes, limit: int) -> str:
        """A layer from an archive; its name."""
        written = self.new_written()
        try:
            unpacking = Unpacking(
                written.files, self.privileges.user, limit, privileged=self.privileges.root
            )
            unpacking.run(archive)
            return self.keep(written)
        finally:
            trees.remove(written.folder)
