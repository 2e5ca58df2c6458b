"""Moments as bytes that travel between machines, and between backends."""

from __future__ import annotations

import zstandard

from sandboxgym.core import codec
from sandboxgym.core.errors import SnapshotCorruptError, SnapshotError, SpecMismatchError
from sandboxgym.sandboxes.repo.backend import Base
from sandboxgym.sandboxes.repo.shell import MAX_STATE_BYTES


def sealed(base: str, shell: bytes, archive: bytes) -> bytes:
    """A moment as bytes: its base by name, the state of its shell, what differs from the base."""
    packed = zstandard.ZstdCompressor(level=3).compress(archive)
    return codec.encode({"base": base, "shell": shell, "size": len(archive), "layer": packed})


def unsealed(exported: bytes, base: Base, limit: int) -> tuple[bytes, bytes]:
    """Shell state and archive of an exported moment, checked before they are unpacked.

    Raises:
        SpecMismatchError: It is one above another base.
        SnapshotCorruptError: It is no exported moment.
    """
    try:
        tree = codec.decode(exported)
        name, shell, size, packed = (tree[key] for key in ("base", "shell", "size", "layer"))
        if [type(part) for part in (name, shell, size, packed)] != [str, bytes, int, bytes]:
            raise TypeError("a part is of another type")
        if len(shell) > MAX_STATE_BYTES:
            raise ValueError(f"its shell has {len(shell)} bytes of state")
        if size > limit or zstandard.get_frame_parameters(packed).content_size != size:
            raise ValueError(f"it declares {size} bytes, and {limit} are allowed")
        archive = zstandard.ZstdDecompressor(max_window_size=2**27).decompress(packed)
    except (KeyError, TypeError, ValueError, SnapshotError, zstandard.ZstdError) as error:
        raise SnapshotCorruptError(f"these bytes are no exported moment: {error}") from error
    if name != base.name:
        raise SpecMismatchError(
            f"this moment is one above the base {name!r}, and is to be imported above {base.name!r}"
        )
    return shell, archive
