"""Unpacking a layer's archive, which may come from anyone.

All of an archive is checked before anything is written. Then it is written by descriptors, so that
no link in it can lead out of the layer.
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
from sandboxgym.sandboxes.repo.overlay.travel import ATTRIBUTE, OPAQUE, WHITEOUT, LayerError, beside

MAX_ENTRIES = 1_000_000
MAX_NAME, MAX_PATH, MAX_LINK = 255, 4095, 4095
MAX_FILE = 2**50
"""Bytes that a file may seem to have; holes take nothing."""
_KINDS = (
    *(tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.GNUTYPE_SPARSE, tarfile.DIRTYPE),
    *(tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE),
)
_PERMISSIONS = 0o7777
_COPIED_AT_A_TIME = 1 << 20


class Unpacking:
    """One unpacking of an archive into an empty directory.

    Args:
        target: The directory.
        user: Who is to own what is written.
        limit: How many bytes all files may hold.
        privileged: Whether overlays are mounted with all rights.
    """

    def __init__(self, target: Path, user: int, limit: int, *, privileged: bool) -> None:
        self.target = target
        self.user = user
        self.limit = limit
        self.privileged = privileged

    def run(self, data: bytes) -> None:
        """Write the layer.

        Raises:
            LayerError: The archive is broken or holds what no layer has; nothing was written.
        """
        try:
            with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
                entries = list(_counted(archive))
                check(entries, self.limit)
                for entry in entries:
                    self._write(archive, entry)
        except (tarfile.TarError, EOFError, ValueError, OverflowError, LookupError) as error:
            if isinstance(error, LayerError):
                raise
            raise LayerError(f"this is not a tar archive: {error}") from error
        for entry in reversed(entries):
            if entry.isdir():
                with self._folder(_name(entry)) as here:
                    self._finish(here, entry)

    def _write(self, archive: tarfile.TarFile, entry: tarfile.TarInfo) -> None:
        name = _name(entry)
        above, _, last = name.rpartition("/")
        with self._folder(above) as parent:
            if last == OPAQUE:
                here = Path(f"/proc/self/fd/{parent}")
                layers.make_opaque(here, privileged=self.privileged)
            elif last.startswith(WHITEOUT):
                deleted = last.removeprefix(WHITEOUT)
                os.mknod(deleted, stat.S_IFCHR, os.makedev(0, 0), dir_fd=parent)
            elif entry.isdir():
                os.mkdir(last, dir_fd=parent)
            elif entry.islnk():
                self._link(entry.linkname, last, parent)
            elif entry.issym() or entry.isfifo():
                self._make_special(entry, last, parent)
            else:
                self._copy(archive, entry, last, parent)

    def _make_special(self, entry: tarfile.TarInfo, last: str, parent: int) -> None:
        if entry.issym():
            os.symlink(entry.linkname, last, dir_fd=parent)
        else:
            os.mkfifo(last, dir_fd=parent)
        os.chown(last, self.user, self.user, dir_fd=parent, follow_symlinks=False)
        if entry.isfifo():
            os.chmod(last, entry.mode & _PERMISSIONS, dir_fd=parent)
        os.utime(last, ns=_times(entry), dir_fd=parent, follow_symlinks=False)

    def _copy(
        self, archive: tarfile.TarFile, entry: tarfile.TarInfo, last: str, parent: int
    ) -> None:
        """Write what a file holds; the rest are holes."""
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(last, flags, 0o600, dir_fd=parent)
        try:
            content = archive.extractfile(entry)
            assert content is not None
            for start, length in _areas(entry):
                content.seek(start)
                while length > 0:
                    data = content.read(min(length, _COPIED_AT_A_TIME))
                    if not data:
                        raise LayerError(f"{entry.name[:200]!r} ends before it should")
                    os.pwrite(descriptor, data, start)
                    start += len(data)
                    length -= len(data)
            os.ftruncate(descriptor, entry.size)
            self._finish(descriptor, entry)
        finally:
            os.close(descriptor)

    def _link(self, first: str, last: str, parent: int) -> None:
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
                below = os.open(part, flags, dir_fd=at)
                os.close(at)
                at = below
            yield at
        finally:
            os.close(at)

    def _finish(self, descriptor: int, entry: tarfile.TarInfo) -> None:
        for name, value in _attributes(entry):
            os.setxattr(descriptor, name, value)
        os.fchown(descriptor, self.user, self.user)
        os.fchmod(descriptor, entry.mode & _PERMISSIONS)
        os.utime(descriptor, ns=_times(entry))


def check(entries: list[tarfile.TarInfo], limit: int) -> None:
    """Check an archive's entries against each other, and what they would take.

    Raises:
        LayerError: They are not a layer.
    """
    folders, files, names, held = {""}, set(), set(), 0
    for entry in entries:
        name = _name(entry)
        above, _, last = name.rpartition("/")
        if entry.type not in _KINDS:
            raise LayerError(f"{name!r} is a device or of an unknown kind")
        if above not in folders:
            raise LayerError(f"{name!r} is in no folder that came before")
        if last.startswith(WHITEOUT):
            _check_mark(entry, name, last)
            name = name if last == OPAQUE else beside(name, last.removeprefix(WHITEOUT))
        if name in names:
            raise LayerError(f"{name!r} is in the archive twice")
        names.add(name)
        if entry.isdir():
            folders.add(name)
        elif entry.islnk():
            if entry.linkname not in files:
                raise LayerError(f"{name!r} is a hard link, and what it leads to is no file here")
        elif entry.issym():
            _check_link(entry, name)
        elif entry.isreg() and not last.startswith(WHITEOUT):
            files.add(name)
            held += sum(length for _, length in _areas(entry))
        _times(entry)
        list(_attributes(entry))
        if held > limit:
            raise LayerError(f"the files hold more than the {limit} bytes that are allowed")


def _check_mark(entry: tarfile.TarInfo, name: str, last: str) -> None:
    if not entry.isreg() or entry.size:
        raise LayerError(f"{name!r} says that something is deleted, and is no empty file")
    if last != OPAQUE:
        checked_name(last.removeprefix(WHITEOUT))
        if last.removeprefix(WHITEOUT).startswith(WHITEOUT):
            raise LayerError(f"{name!r} has a meaning that is not known here")


def _check_link(entry: tarfile.TarInfo, name: str) -> None:
    target = os.fsencode(entry.linkname)
    if not 0 < len(target) <= MAX_LINK or b"\0" in target:
        raise LayerError(f"{name!r} is a symbolic link to what no link can lead to")


def checked_name(name: str) -> str:
    """A relative path that stays where it is, as the archive has it.

    Raises:
        LayerError: It does not.
    """
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in name:
        raise LayerError(f"{name[:200]!r} is not a path inside a layer")
    if len(os.fsencode(name)) > MAX_PATH or any(len(os.fsencode(p)) > MAX_NAME for p in parts):
        raise LayerError(f"{name[:200]!r}... is longer than a path may be")
    return name


def _counted(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for count, entry in enumerate(archive, start=1):
        if count > MAX_ENTRIES:
            raise LayerError(f"the archive has more than {MAX_ENTRIES} entries")
        yield entry


def _name(entry: tarfile.TarInfo) -> str:
    return checked_name(entry.name)


def _areas(entry: tarfile.TarInfo) -> list[tuple[int, int]]:
    """Where a file has data, as starts and lengths.

    Raises:
        LayerError: They overlap or go beyond the file.
    """
    if not 0 <= entry.size <= MAX_FILE:
        raise LayerError(f"{entry.name[:200]!r} says that it has {entry.size} bytes")
    sparse: list[tuple[int, int]] | None = getattr(entry, "sparse", None)
    areas = [(0, entry.size)] if sparse is None else [(s, n) for s, n in sparse if n]
    end = 0
    for start, length in areas:
        if start < end or length < 0 or start + length > entry.size:
            raise LayerError(f"{entry.name[:200]!r} has data where it cannot have any")
        end = start + length
    return areas


def _attributes(entry: tarfile.TarInfo) -> Iterator[tuple[str, bytes]]:
    """Extended attributes of an entry.

    Raises:
        LayerError: One is not the user's own.
    """
    for header, value in entry.pax_headers.items():
        name = header.removeprefix(ATTRIBUTE)
        if name != header:
            if not layers.is_users_attribute(name) or "\0" in name or len(name) > MAX_NAME:
                raise LayerError(f"{entry.name[:200]!r} has the attribute {name[:200]!r}")
            yield name, value.encode("utf-8", "surrogateescape")


def _times(entry: tarfile.TarInfo) -> tuple[int, int]:
    """Nanoseconds of access and change, for `os.utime`."""
    try:
        moment = int(Decimal(entry.pax_headers.get("mtime", str(entry.mtime))) * 10**9)
    except (InvalidOperation, ValueError, OverflowError) as error:
        raise LayerError(f"{entry.name[:200]!r} has no time that can be") from error
    limit = 2**62
    moment = max(-limit, min(limit, moment))
    return moment, moment
