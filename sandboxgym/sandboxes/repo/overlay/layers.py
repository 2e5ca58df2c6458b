"""Layers as directories: merging a chain of them into one that says the same.

A layer holds what differs from what lies below, in the kernel's own form (overlayfs.rst of the
kernel's documentation): a character device 0:0 where something was deleted, an extended attribute
on a directory that hides the one below or continues one from another place.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sandboxgym.sandboxes.repo.overlay import trees

_ATTRIBUTES = ("trusted.overlay.", "user.overlay.")
_COPIED_AT_A_TIME = 1 << 20


def is_whiteout(status: os.stat_result) -> bool:
    """Whether a node of a layer says that something below was deleted."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def make_whiteout(path: Path) -> None:
    """Say that what has this path below is deleted."""
    os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))


def make_opaque(path: Path, *, privileged: bool) -> None:
    """Say that nothing shows through a directory from below."""
    os.setxattr(path, f"{_ATTRIBUTES[not privileged]}opaque", b"y")


def stands_alone(path: Path) -> bool:
    """Whether a directory of a layer is not what the same path below continues to be."""
    for name in os.listxattr(path, follow_symlinks=False):
        if name.startswith(_ATTRIBUTES) and name.endswith((".opaque", ".redirect")):
            return True
    return False


def node(root: Path, name: str) -> os.stat_result | None:
    """What a path is in a tree, or None where the tree has no such path.

    No link is followed, in no part of the path: those of a sandbox lead into the sandbox, and here
    they would lead to the machine's own files.
    """
    try:
        for above in reversed(list(_above(name))):
            if not stat.S_ISDIR((root / above).lstat().st_mode):
                return None
        return (root / name).lstat()
    except FileNotFoundError:
        return None


@dataclass
class Merge:
    """One merging of layers.

    Attributes:
        base: What lies below all layers.
        view: The base with all layers mounted above it.
        target: The directory that becomes the merged layer; empty at the start.
        privileged: Whether overlays are mounted with all rights.
    """

    base: Path
    view: Path
    target: Path
    privileged: bool
    _linked: dict[tuple[int, int], Path] = field(default_factory=dict)
    _folders: dict[str, os.stat_result] = field(default_factory=dict)

    def run(self, layers: Sequence[Path]) -> None:
        """Write to the target how the view differs from the base."""
        touched, whole = _touched(layers)
        self._folders[""] = self.view.lstat()
        for name in sorted(touched, key=lambda name: name.split("/")):
            if not whole.isdisjoint(_above(name)):
                continue  # was copied with the folder
            status = node(self.view, name)
            if status is not None:
                self._copy(name, status)
                if name in whole and stat.S_ISDIR(status.st_mode):
                    self._copy_whole(name)
            elif node(self.base, name) is not None:
                self._delete(name)
        for name in reversed(list(self._folders)):
            self._finish_folder(name)

    def _copy_whole(self, name: str) -> None:
        """Copy all that a folder holds, so that it needs nothing from below."""
        below = node(self.base, name)
        if below is not None and stat.S_ISDIR(below.st_mode):
            make_opaque(self.target / name, privileged=self.privileged)
        for inside, entry in trees.walk(self.view / name):
            self._copy(f"{name}/{inside}", entry.stat(follow_symlinks=False))

    def _delete(self, name: str) -> None:
        """Say that what the base has under a name is gone, unless its folder is."""
        above = name.rpartition("/")[0]
        status = node(self.view, above) if above else self.view.lstat()
        if status is not None and stat.S_ISDIR(status.st_mode):
            self._make_folders(above)
            make_whiteout(self.target / name)

    def _copy(self, name: str, status: os.stat_result) -> None:
        """Copy one node of the view, once for all its hard links; a folder without its content."""
        if stat.S_ISDIR(status.st_mode):
            self._make_folders(name)
            return
        self._make_folders(name.rpartition("/")[0])
        source, target = self.view / name, self.target / name
        if status.st_nlink > 1:
            first = self._linked.setdefault((status.st_dev, status.st_ino), target)
            if first is not target:
                os.link(first, target, follow_symlinks=False)
                return
        copy_node(source, target, status)

    def _make_folders(self, name: str) -> None:
        """Make a folder, and those above it."""
        for folder in [*reversed(list(_above(name))), name]:
            if folder not in self._folders:
                self._folders[folder] = (self.view / folder).lstat()
                (self.target / folder).mkdir()

    def _finish_folder(self, name: str) -> None:
        """Give a folder what the view's has, its times last: each entry made inside sets them."""
        status, target = self._folders[name], self.target / name
        copy_owner(status, target)
        copy_attributes(self.view / name, target)
        target.chmod(stat.S_IMODE(status.st_mode))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _touched(layers: Sequence[Path]) -> tuple[set[str], set[str]]:
    """Paths that any layer says something about; and those that may hide a folder of the base."""
    touched: set[str] = set()
    whole: set[str] = set()
    for layer in layers:
        for name, entry in trees.walk(layer):
            touched.add(name)
            if not entry.is_dir(follow_symlinks=False) or stands_alone(Path(entry.path)):
                whole.add(name)
    return touched, whole


def _above(name: str) -> Iterator[str]:
    """The folders that a path goes through, the nearest first."""
    above = name.rpartition("/")[0]
    while above:
        yield above
        above = above.rpartition("/")[0]


def copy_node(source: Path, target: Path, status: os.stat_result) -> None:
    """Copy what is no folder: a file, a link, a FIFO or a socket; a sandbox cannot make devices."""
    if stat.S_ISLNK(status.st_mode):
        target.symlink_to(source.readlink())
    elif stat.S_ISREG(status.st_mode):
        copy_file(source, target)
    else:
        os.mknod(target, status.st_mode)
    copy_owner(status, target)
    if not stat.S_ISLNK(status.st_mode):
        copy_attributes(source, target)
        target.chmod(stat.S_IMODE(status.st_mode))
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)


def copy_file(source: Path, target: Path) -> None:
    """Copy the content of a file; its holes stay holes."""
    with source.open("rb") as reader, target.open("xb") as writer:
        size = os.fstat(reader.fileno()).st_size
        for start, length in data_areas(reader.fileno(), size):
            end = start + length
            while start < end:
                wanted = min(_COPIED_AT_A_TIME, end - start)
                data = os.pread(reader.fileno(), wanted, start)
                if not data:
                    raise OSError(errno.EIO, "a frozen file became shorter", str(source))
                start += os.pwrite(writer.fileno(), data, start)
        os.ftruncate(writer.fileno(), size)


def data_areas(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Where a file has data, as starts and lengths; the rest are holes."""
    at = 0
    while at < size:
        try:
            start = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return  # there is only a hole left
        at = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
        yield start, at - start


def copy_owner(status: os.stat_result, target: Path) -> None:
    """Give a node its owner."""
    os.chown(target, status.st_uid, status.st_gid, follow_symlinks=False)


def copy_attributes(source: Path, target: Path) -> None:
    """Copy extended attributes that belong to the user."""
    for name in os.listxattr(source, follow_symlinks=False):
        if is_users_attribute(name):
            value = os.getxattr(source, name, follow_symlinks=False)
            os.setxattr(target, name, value, follow_symlinks=False)


def is_users_attribute(name: str) -> bool:
    """Whether an extended attribute is one of a user, and not of an overlay."""
    return name.startswith("user.") and not name.startswith(_ATTRIBUTES)
