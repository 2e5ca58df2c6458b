"""Layers as tar archives, in the form of the OCI image layer specification.

A deleted path is an empty file `.wh.NAME`, a directory that hides the one below has an empty file
`.wh..wh..opq` in it. Files with holes are in the PAX form of sparse files, extended attributes in
the form that tar and Docker use. Sockets are left out: nobody listens to them any more.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path

from sandboxgym.sandboxes.repo.overlay import layers, trees

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
ATTRIBUTE = "SCHILY.xattr."
MAX_BYTES = 2**32 - 1
"""Of an archive: what a message between our processes can hold."""


class LayerError(ValueError):
    """A layer cannot be an archive, or an archive is not a layer that may be unpacked."""


class Parts(io.RawIOBase):
    """A file that is only written to, kept as the parts that were written."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def writable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """How much was written."""
        return self.size

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Keep more.

        Raises:
            LayerError: It is too much.
        """
        self.size += len(data)
        if self.size > MAX_BYTES:
            raise LayerError(f"the layer has more than {MAX_BYTES} bytes, and cannot travel")
        self.parts.append(bytes(data))
        return len(data)


def pack(layer: Path) -> bytes:
    """A merged layer as an archive; owners are left out, as there is only one.

    Raises:
        LayerError: It is too large.
    """
    whole = Parts()
    linked: dict[tuple[int, int], str] = {}
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, node in trees.walk(layer):
            status = node.stat(follow_symlinks=False)
            if layers.is_whiteout(status):
                archive.addfile(tarfile.TarInfo(beside(name, WHITEOUT + node.name)))
                continue
            if stat.S_ISSOCK(status.st_mode):
                continue
            if node.name.startswith(WHITEOUT):
                raise LayerError(f"{name!r} has a name that means something else in a layer")
            entry = archive.gettarinfo(node.path, arcname=name)
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            seconds, nanoseconds = divmod(status.st_mtime_ns, 10**9)
            entry.pax_headers = {"mtime": f"{seconds}.{nanoseconds:09d}"}  # a float rounds it
            first = linked.setdefault((status.st_dev, status.st_ino), name)
            if stat.S_ISREG(status.st_mode) and first != name:
                entry.type, entry.linkname, entry.size = tarfile.LNKTYPE, first, 0
            elif not entry.issym():
                entry.pax_headers = {**entry.pax_headers, **_attributes(node.path)}
            if entry.isreg():
                _add_file(archive, entry, node.path)
            else:
                archive.addfile(entry)
            if entry.isdir() and layers.stands_alone(Path(node.path)):
                archive.addfile(tarfile.TarInfo(f"{name}/{OPAQUE}"))
    return b"".join(whole.parts)


def beside(name: str, other: str) -> str:
    """The path of another node in the same folder."""
    above, slash, _ = name.rpartition("/")
    return f"{above}{slash}{other}"


def _attributes(path: str) -> dict[str, str]:
    """Extended attributes that belong to the user, as headers."""
    return {
        f"{ATTRIBUTE}{name}": os.getxattr(path, name, follow_symlinks=False).decode(
            "utf-8", "surrogateescape"
        )
        for name in os.listxattr(path, follow_symlinks=False)
        if layers.is_users_attribute(name)
    }


def _add_file(archive: tarfile.TarFile, entry: tarfile.TarInfo, path: str) -> None:
    """Add a file; where it has holes, only what lies between them, with a map."""
    with Path(path).open("rb") as file:
        areas = list(layers.data_areas(file.fileno(), entry.size))
        held = sum(length for _, length in areas)
        if held < entry.size:
            areas = areas or [(0, 0)]
            sparse = {
                "GNU.sparse.major": "0",
                "GNU.sparse.minor": "1",
                "GNU.sparse.name": entry.name,
                "GNU.sparse.size": str(entry.size),
                "GNU.sparse.numblocks": str(len(areas)),
                "GNU.sparse.map": ",".join(f"{start},{length}" for start, length in areas),
            }
            entry.pax_headers = {**entry.pax_headers, **sparse}
            entry.size = held
        archive.addfile(entry, Areas(file.fileno(), areas))


class Areas(io.RawIOBase):
    """Parts of a file one after the other.

    Args:
        descriptor: The file.
        areas: Starts and lengths.
    """

    def __init__(self, descriptor: int, areas: list[tuple[int, int]]) -> None:
        self.descriptor = descriptor
        self.areas = areas[::-1]

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to this many bytes, fewer only at the end."""
        read = bytearray()
        while self.areas and len(read) < size:
            start, length = self.areas.pop()
            data = os.pread(self.descriptor, min(length, size - len(read)), start)
            if not data:
                raise LayerError("a file of a frozen layer became shorter")
            read += data
            if length > len(data):
                self.areas.append((start + len(data), length - len(data)))
        return bytes(read)
