"""Moments as archives of what differs from their image, in the form of the overlay backend.

The daemon gives away only whole file systems. So the files of an image are read once into an index,
and those of a moment are compared with it.
"""

from __future__ import annotations

import hashlib
import io
import json
import stat
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

from sandboxgym.core.errors import SnapshotCorruptError
from sandboxgym.sandboxes.repo.backend import SandboxError
from sandboxgym.sandboxes.repo.docker.images import is_runtime_file
from sandboxgym.sandboxes.repo.overlay.travel import OPAQUE, WHITEOUT, LayerError, Parts, beside
from sandboxgym.sandboxes.repo.overlay.unpacking import check

_READ_AT_A_TIME = 1 << 20
_USER = 1000


@dataclass(frozen=True)
class Node:
    """What a path is, as far as the agent can change it.

    Attributes:
        kind: As tar has it; a hard link has that of its file.
        mode: Permissions.
        mtime: Seconds.
        content: A hash of the content, or where a symbolic link leads to.
        first: Of hard links, the name that the daemon gives first.
    """

    kind: bytes
    mode: int
    mtime: float
    content: str
    first: str


@dataclass(frozen=True)
class Index:
    """All paths of a file system, and who owns them."""

    nodes: Mapping[str, Node]
    owners: Mapping[str, tuple[int, int]]


def index(file: IO[bytes]) -> Index:
    """The index of an exported file system."""
    nodes: dict[str, Node] = {}
    owners: dict[str, tuple[int, int]] = {}
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:") as archive:
        for entry in archive:
            name = _clean(entry.name)
            if not name or is_runtime_file(name) or entry.ischr() or entry.isblk():
                continue
            owners[name] = (entry.uid, entry.gid)
            if entry.islnk():
                nodes[name] = nodes[_clean(entry.linkname)]
                continue
            content = entry.linkname if entry.issym() else _hash(archive, entry)
            kind = tarfile.REGTYPE if entry.isreg() else entry.type
            # The mode of a symbolic link means nothing.
            mode = 0 if entry.issym() else entry.mode
            nodes[name] = Node(kind, mode, int(entry.mtime), content, name)
    return Index(nodes, owners)


def difference(file: IO[bytes], base: Index) -> bytes:
    """The archive of what differs between a base and the exported file system of a moment."""
    now = index(file).nodes
    changed = {name for name, node in now.items() if base.nodes.get(name) != node}
    linked: dict[str, list[str]] = defaultdict(list)
    for name, node in now.items():
        linked[node.first].append(name)
    for name in list(changed):  # all names of a file travel together, or they would part
        changed.update(linked[now[name].first])
    deleted = {name for name in base.nodes if name not in now and _folder_is_there(name, now)}
    for name in (*changed, *deleted):
        changed.update(_above(name))
    file.seek(0)
    whole = Parts()
    with (
        tarfile.open(fileobj=file, mode="r:") as source,
        tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        entries = {_clean(entry.name): entry for entry in source}
        written: dict[str, str] = {}
        marks = {beside(name, WHITEOUT + name.rpartition("/")[2]) for name in deleted}
        for name in sorted(changed | marks):
            if name in marks:
                target.addfile(tarfile.TarInfo(name))
                continue
            if name.rpartition("/")[2].startswith(WHITEOUT):
                raise LayerError(f"{name!r} has a name that means something else in a layer")
            _add(target, source, entries, name, now[name], written)
    return b"".join(whole.parts)


def _add(
    target: tarfile.TarFile,
    source: tarfile.TarFile,
    entries: Mapping[str, tarfile.TarInfo],
    name: str,
    node: Node,
    written: dict[str, str],
) -> None:
    """Add a path; the first name of a file that is written is the file, the others links to it."""
    entry = tarfile.TarInfo(name)
    held = entries[node.first]
    entry.type, entry.mode, entry.mtime = node.kind, held.mode, int(held.mtime)
    if node.kind == tarfile.SYMTYPE:
        entry.linkname = node.content
    elif node.kind == tarfile.REGTYPE:
        first = written.setdefault(node.first, name)
        if first != name:
            entry.type, entry.linkname = tarfile.LNKTYPE, first
        else:
            entry.size = held.size
            target.addfile(entry, source.extractfile(held))
            return
    target.addfile(entry)


@dataclass(frozen=True)
class Changes:
    """An archive as the daemon can apply it.

    Attributes:
        deleted: Paths to be deleted first.
        archive: All others.
    """

    deleted: list[str]
    archive: bytes

    @classmethod
    def read(cls, layer: bytes, base: Index, limit: int) -> Changes:
        """Read an archive of unknown origin.

        Raises:
            SnapshotCorruptError: It is not one that a backend makes.
        """
        deleted, kept = [], []
        try:
            with tarfile.open(fileobj=io.BytesIO(layer), mode="r:") as archive:
                entries = list(archive)
                check(entries, limit)
                for entry in entries:
                    above, _, last = entry.name.rpartition("/")
                    if last == OPAQUE:
                        deleted.append(above)
                    elif last.startswith(WHITEOUT):
                        deleted.append(beside(entry.name, last.removeprefix(WHITEOUT)))
                    else:
                        content = archive.extractfile(entry) if entry.isreg() else None
                        kept.append((_owned(entry, base), content.read() if content else b""))
        except (tarfile.TarError, EOFError, ValueError, OverflowError, LookupError) as error:
            raise SnapshotCorruptError(f"the layer cannot be unpacked: {error}") from error
        return cls(deleted, archive_of(kept))


def _owned(entry: tarfile.TarInfo, base: Index) -> tarfile.TarInfo:
    """An entry that belongs to the agent, unless it is a folder of the base."""
    made = tarfile.TarInfo(entry.name)
    made.type, made.mode, made.linkname = entry.type, entry.mode, entry.linkname
    made.mtime, made.size = entry.mtime, entry.size
    if entry.isreg():
        made.type = tarfile.REGTYPE  # holes are filled
    node = base.nodes.get(entry.name)
    of_base = entry.isdir() and node is not None and node.kind == tarfile.DIRTYPE
    made.uid, made.gid = base.owners[entry.name] if of_base else (_USER, _USER)
    if not of_base and not entry.issym():
        made.mode &= ~(stat.S_ISUID | stat.S_ISGID)
    return made


def archive_of(entries: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """An archive of entries and their contents."""
    whole = Parts()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry, content in entries:
            if entry.isreg():
                entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return b"".join(whole.parts)


def only_file(archive: bytes) -> bytes:
    """The content of the file that is alone in an archive."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as opened:
        content = opened.extractfile(next(iter(opened)))
        if content is None:
            raise SandboxError("the daemon sent no file where one was asked for")
        return content.read()


def id_in(answer: Any) -> str:
    """The id in the daemon's answer to an import."""
    for line in reversed(answer.splitlines()):
        said = json.loads(line)
        if "error" in said:
            raise SandboxError(f"the daemon could not flatten the layers: {said['error']}")
        if str(said.get("status", "")).startswith("sha256:"):
            return str(said["status"])
    raise SandboxError(f"the daemon did not name the image that it made: {answer[-200:]!r}")


def _hash(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> str:
    content = archive.extractfile(entry) if entry.isreg() else None
    if content is None:
        return ""
    seen = hashlib.blake2b(digest_size=16)
    while data := content.read(_READ_AT_A_TIME):
        seen.update(data)
    return seen.hexdigest()


def _clean(name: str) -> str:
    return name.removeprefix("./").strip("/")


def _folder_is_there(name: str, nodes: Mapping[str, Node]) -> bool:
    """Whether the folder of a path is still one; where it is not, the path need not be deleted."""
    above = name.rpartition("/")[0]
    return not above or (above in nodes and nodes[above].kind == tarfile.DIRTYPE)


def _above(name: str) -> Iterator[str]:
    while name := name.rpartition("/")[0]:
        yield name
