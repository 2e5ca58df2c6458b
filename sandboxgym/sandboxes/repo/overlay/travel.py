"""Layers as tar archives, in the form of the OCI image layer specification.

A deleted path is an empty file `.wh.NAME`, a directory that hides the one below has an empty file
`.wh..wh..opq` in it. Archives come from anywhere: everything in one is checked before it is
written, and it is written by descriptors, so that no link in it can lead out of the layer.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path

from sandboxgym.sandboxes.repo.overlay import layers

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
MAX_ENTRIES = 1_000_000
MAX_NAME, MAX_PATH = 255, 4095
_KINDS = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE)
_PERMISSIONS = 0o7777


class LayerError(ValueError):
    """An archive is not a layer that may be unpacked."""


def pack(layer: Path) -> bytes:
    """A merged layer as an archive; owners are left out, as there is only one."""
    buffer = io.BytesIO()
    linked: dict[tuple[int, int], str] = {}
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in _nodes(layer):
            status = path.lstat()
            if layers.is_whiteout(status):
                above, _, last = name.rpartition("/")
                archive.addfile(tarfile.TarInfo(f"{above}/{WHITEOUT}{last}".lstrip("/")))
                continue
            if stat.S_ISSOCK(status.st_mode):
                continue  # nobody listens to it any more, and a tar has no such kind
            entry = archive.gettarinfo(str(path), arcname=name)
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            seconds, nanoseconds = divmod(status.st_mtime_ns, 10**9)
            entry.pax_headers = {"mtime": f"{seconds}.{nanoseconds:09d}"}  # a float rounds it
            first = linked.setdefault((status.st_dev, status.st_ino), name)
            if status.st_nlink > 1 and stat.S_ISREG(status.st_mode) and first != name:
                entry.type, entry.linkname, entry.size = tarfile.LNKTYPE, first, 0
            if entry.isreg():
                with path.open("rb") as file:
                    archive.addfile(entry, file)
            else:
                archive.addfile(entry)
            if entry.isdir() and layers.stands_alone(path):
                archive.addfile(tarfile.TarInfo(f"{name}/{OPAQUE}"))
    return buffer.getvalue()


def _nodes(layer: Path) -> Iterator[tuple[str, Path]]:
    """All nodes of a layer by their names, a directory before its content."""
    for parent, folders, files in os.walk(layer):
        folders.sort()
        for name in sorted([*folders, *files]):
            path = Path(parent, name)
            yield str(path.relative_to(layer)), path


class Unpacking:
    """One unpacking of an archive into an empty directory.

    Args:
        target: The directory.
        user: Who is to own what is written.
        privileged: Whether overlays are mounted with all rights.
    """

    def __init__(self, target: Path, user: int, *, privileged: bool) -> None:
        self.target = target
        self.user = user
        self.privileged = privileged
        self.files: set[str] = set()
        self.folders: dict[str, tarfile.TarInfo] = {}

    def run(self, data: bytes) -> None:
        """Write the layer.

        Raises:
            LayerError: The archive is broken or holds what no layer has.
        """
        try:
            with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
                for count, entry in enumerate(archive):
                    if count >= MAX_ENTRIES:
                        raise LayerError(f"the archive has more than {MAX_ENTRIES} entries")
                    self._write(archive, entry)
        except (tarfile.TarError, EOFError, OverflowError) as error:
            raise LayerError(f"this is not a tar archive: {error}") from error
        for name, entry in reversed(self.folders.items()):
            with self._folder(name) as here:
                self._finish(here, entry)

    def _write(self, archive: tarfile.TarFile, entry: tarfile.TarInfo) -> None:
        name = checked_name(entry.name)
        if entry.type not in (*_KINDS, tarfile.FIFOTYPE):
            raise LayerError(f"{name!r} is a device or of an unknown kind")
        above, _, last = name.rpartition("/")
        with self._folder(above) as parent:
            try:
                self._make(archive, entry, parent, name, last)
            except FileExistsError:
                raise LayerError(f"{name!r} is in the archive twice") from None

    def _make(
        self, archive: tarfile.TarFile, entry: tarfile.TarInfo, parent: int, name: str, last: str
    ) -> None:
        if last == OPAQUE:
            layers.make_opaque(Path(f"/proc/self/fd/{parent}"), privileged=self.privileged)
        elif last.startswith(WHITEOUT):
            checked_name(last.removeprefix(WHITEOUT))
            os.mknod(last.removeprefix(WHITEOUT), stat.S_IFCHR, os.makedev(0, 0), dir_fd=parent)
        elif entry.isdir():
            os.mkdir(last, dir_fd=parent)
            self.folders[name] = entry
        elif entry.issym():
            os.symlink(entry.linkname, last, dir_fd=parent)
            os.chown(last, self.user, self.user, dir_fd=parent, follow_symlinks=False)
            self._set_times(last, entry, parent)
        elif entry.islnk():
            self._link(checked_name(entry.linkname), last, parent)
        elif entry.isfifo():
            os.mkfifo(last, dir_fd=parent)
            os.chown(last, self.user, self.user, dir_fd=parent, follow_symlinks=False)
            os.chmod(last, entry.mode & _PERMISSIONS, dir_fd=parent)
            self._set_times(last, entry, parent)
        else:
            self._copy(archive, entry, last, parent)
            self.files.add(name)

    def _copy(
        self, archive: tarfile.TarFile, entry: tarfile.TarInfo, last: str, parent: int
    ) -> None:
        """Write a file; blocks of zeros become holes."""
        content = archive.extractfile(entry)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(last, flags, 0o600, dir_fd=parent)
        try:
            at = 0
            while content is not None and (block := content.read(1 << 16)):
                if block.strip(b"\0"):
                    os.pwrite(descriptor, block, at)
                at += len(block)
            os.ftruncate(descriptor, at)
            self._finish(descriptor, entry)
        finally:
            os.close(descriptor)

    def _link(self, first: str, last: str, parent: int) -> None:
        if first not in self.files:
            raise LayerError(f"a hard link leads to {first!r}, which is no file before it")
        above, _, name = first.rpartition("/")
        with self._folder(above) as source:
            os.link(name, last, src_dir_fd=source, dst_dir_fd=parent, follow_symlinks=False)

    @contextmanager
    def _folder(self, name: str) -> Iterator[int]:
        """A descriptor of a folder that the archive made."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        at = os.open(self.target, flags)
        try:
            for part in name.split("/") if name else ():
                try:
                    below = os.open(part, flags, dir_fd=at)
                except OSError as error:
                    raise LayerError(f"{name!r} is no folder that came before") from error
                os.close(at)
                at = below
            yield at
        finally:
            os.close(at)

    def _finish(self, descriptor: int, entry: tarfile.TarInfo) -> None:
        os.fchown(descriptor, self.user, self.user)
        os.fchmod(descriptor, entry.mode & _PERMISSIONS)
        os.utime(descriptor, ns=_times(entry))

    def _set_times(self, last: str, entry: tarfile.TarInfo, parent: int) -> None:
        os.utime(last, ns=_times(entry), dir_fd=parent, follow_symlinks=False)


def checked_name(name: str) -> str:
    """A relative path that stays where it is, as the archive has it.

    Raises:
        LayerError: It does not.
    """
    parts = name.split("/")
    if name.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\0" in name:
        raise LayerError(f"{name[:200]!r} is not a path inside a layer")
    if len(os.fsencode(name)) > MAX_PATH or any(len(os.fsencode(p)) > MAX_NAME for p in parts):
        raise LayerError(f"{name[:200]!r}... is longer than a path may be")
    return name


def _times(entry: tarfile.TarInfo) -> tuple[int, int]:
    """Nanoseconds of access and change, for `os.utime`."""
    try:
        moment = int(Decimal(entry.pax_headers.get("mtime", str(entry.mtime))) * 10**9)
    except (InvalidOperation, ValueError, OverflowError) as error:
        raise LayerError(f"{entry.name[:200]!r} has no time that can be") from error
    limit = 2**62
    moment = max(-limit, min(limit, moment))
    return moment, moment
