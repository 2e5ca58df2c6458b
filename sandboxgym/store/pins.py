"""What running processes want to keep, so that no other process drops it.

Each process that pins something has a file of keys, whose lock it holds for as long as it runs. A
file that nobody holds the lock of is what a process left that is no more; whoever finds it removes
it.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from pathlib import Path

from sandboxgym.core.errors import StoreError
from sandboxgym.store.blob import KEY_BYTES
from sandboxgym.store.durable import is_locked, write_all

_MAX_BYTES = 2**24


class Pins:
    """The pins of this process, counted. To be changed while the store's lock is held."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: Counter[bytes] = Counter()
        self._descriptor: int | None = None
        self._path: Path | None = None
        self._process = 0

    def add(self, key: bytes) -> None:
        """Pin once more."""
        self.counts[key] += 1
        self._write()

    def take_away(self, key: bytes) -> None:
        """Pin once less.

        Raises:
            StoreError: It is not pinned.
        """
        if self.counts[key] == 0:
            raise StoreError(f"the snapshot {key.hex()} is not pinned by this process")
        self.counts[key] -= 1
        self._write()

    @property
    def in_use(self) -> bool:
        """Whether this process has a file of pins."""
        return self._descriptor is not None and self._process == os.getpid()

    def close(self) -> None:
        """Pin nothing any more."""
        self.counts.clear()
        if self._descriptor is not None and self._path is not None:
            os.close(self._descriptor)
            self._path.unlink(missing_ok=True)
        self._descriptor = self._path = None

    def all(self) -> set[bytes]:
        """What this process and all others that run have pinned."""
        keys = set(+self.counts)
        for path in self.folder.iterdir():
            if path != self._path:
                keys |= _read(path)
        return keys

    def _write(self) -> None:
        if self._process != os.getpid():  # a fork has its own pins
            self._descriptor = self._path = None
            self._process = os.getpid()
        if self._descriptor is None:
            self._path = self.folder / uuid.uuid4().hex
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o666)
            is_locked(self._descriptor)
        data = b"".join(+self.counts)
        os.ftruncate(self._descriptor, 0)
        write_all(self._descriptor, data, 0)


def _read(path: Path) -> set[bytes]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not is_locked(descriptor):
            path.unlink()
            return set()
        data = os.pread(descriptor, _MAX_BYTES, 0)
    finally:
        os.close(descriptor)
    return {data[at : at + KEY_BYTES] for at in range(0, len(data), KEY_BYTES)}
