"""Layers as directories: merging a chain of them into one that says the same.

A layer holds what differs from what lies below, in the kernel's own form (overlayfs.rst of the
kernel's documentation): a character device 0:0 where something was deleted, an extended attribute
on a directory that hides the one below or continues one from another place.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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

    def run(self, layers: Sequence[Path]) -> None:
        """Write to the target how the view differs from the base."""
        shutil.copystat(self.view, self.target)
        copy_owner(self.view.lstat(), self.target)
        touched, whole = _touched(layers)
        for name in sorted(touched, key=lambda name: name.split("/")):
            if any(name.startswith(f"{folder}/") for folder in whole):
                continue  # was copied with the folder
            if os.path.lexists(self.view / name):
                self._copy(name, everything=name in whole)
            elif os.path.lexists(self.base / name) and not _replaced(self.target, name):
                self._parents(name)
                make_whiteout(self.target / name)
        self._times(touched)

    def _copy(self, name: str, *, everything: bool) -> None:
        """Copy one node of the view; a directory with its content where it stands alone."""
        source, target = self.view / name, self.target / name
        status = source.lstat()
        self._parents(name)
        if not stat.S_ISDIR(status.st_mode):
            self._copy_node(source, status, target)
            return
        if not target.exists():
            target.mkdir()
        copy_owner(status, target)
        if everything and (self.base / name).is_dir():
            make_opaque(target, privileged=self.privileged)
        if everything or not (self.base / name).is_dir():
            for child in sorted(source.iterdir()):
                self._copy(f"{name}/{child.name}", everything=True)
        copy_attributes(source, target)
        target.chmod(stat.S_IMODE(status.st_mode))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _copy_node(self, source: Path, status: os.stat_result, target: Path) -> None:
        """Copy a node that is no directory, once for all its hard links."""
        if os.path.lexists(target):
            return
        identity = (status.st_dev, status.st_ino)
        if status.st_nlink > 1:
            first = self._linked.setdefault(identity, target)
            if first is not target:
                os.link(first, target, follow_symlinks=False)
                return
        if stat.S_ISLNK(status.st_mode):
            target.symlink_to(source.readlink())
        elif stat.S_ISREG(status.st_mode):
            copy_file(source, target)
        else:  # a FIFO or a socket; a sandbox cannot make devices
            os.mknod(target, status.st_mode)
        copy_owner(status, target)
        if not stat.S_ISLNK(status.st_mode):
            copy_attributes(source, target)
            target.chmod(stat.S_IMODE(status.st_mode))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)

    def _parents(self, name: str) -> None:
        """Make the directories above a node, as the view has them."""
        above = name.rpartition("/")[0]
        if above and not (self.target / above).exists():
            self._parents(above)
            (self.target / above).mkdir()
            status = (self.view / above).lstat()
            copy_owner(status, self.target / above)
            (self.target / above).chmod(stat.S_IMODE(status.st_mode))

    def _times(self, touched: set[str]) -> None:
        """Set the times of directories again, which what was made inside has changed."""
        for name in sorted({*touched, *_above(touched)}, reverse=True):
            target, source = self.target / name, self.view / name
            if target.is_dir() and not target.is_symlink():
                status = source.lstat()
                os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _touched(layers: Sequence[Path]) -> tuple[set[str], set[str]]:
    """Paths that any layer says something about; and directories among them that stand alone."""
    touched: set[str] = set()
    whole: set[str] = set()
    for layer in layers:
        for path in _walk(layer):
            name = str(path.relative_to(layer))
            touched.add(name)
            if path.is_dir() and not path.is_symlink() and stands_alone(path):
                whole.add(name)
    return touched, whole


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(parent, name)


def _above(names: set[str]) -> set[str]:
    parts = (name.split("/") for name in names)
    return {"/".join(part[:i]) for part in parts for i in range(1, len(part))}


def _replaced(target: Path, name: str) -> bool:
    """Whether a parent of a path has become something that is no directory."""
    above = name.rpartition("/")[0]
    while above:
        node = target / above
        if os.path.lexists(node) and (node.is_symlink() or not node.is_dir()):
            return True
        above = above.rpartition("/")[0]
    return False


def copy_file(source: Path, target: Path) -> None:
    """Copy the content of a file; its holes stay holes."""
    with source.open("rb") as reader, target.open("xb") as writer:
        size = os.fstat(reader.fileno()).st_size
        at = 0
        while at < size:
            try:
                start = os.lseek(reader.fileno(), at, os.SEEK_DATA)
            except OSError:  # ENXIO: there is only a hole left
                break
            end = os.lseek(reader.fileno(), start, os.SEEK_HOLE)
            while start < end:
                data = os.pread(reader.fileno(), min(_COPIED_AT_A_TIME, end - start), start)
                if not data:
                    break
                os.pwrite(writer.fileno(), data, start)
                start += len(data)
            at = end
        os.ftruncate(writer.fileno(), size)


def copy_owner(status: os.stat_result, target: Path) -> None:
    """Give a node its owner."""
    os.chown(target, status.st_uid, status.st_gid, follow_symlinks=False)


def copy_attributes(source: Path, target: Path) -> None:
    """Copy extended attributes that belong to the user."""
    for name in os.listxattr(source, follow_symlinks=False):
        if name.startswith("user.") and not name.startswith(_ATTRIBUTES):
            value = os.getxattr(source, name, follow_symlinks=False)
            os.setxattr(target, name, value, follow_symlinks=False)
