"""What was asked of environments, written down as it happens.

A process that hangs or dies cannot say what it was doing. Its journal can: every call is written to
a file before it is made, and struck off after it. The file is shared with the processes that the
checks start, and read by the one that watches over them.
"""

from __future__ import annotations

import itertools
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from sandboxgym.core import codec

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Whereabouts:
    """Where a process is, or was when it ended.

    Attributes:
        call: The call that has not returned, in words.
        seed: Seed of the episode, or None where there is none or it was not seeded.
        actions: Actions of that episode, the one that has not returned included.
    """

    call: str
    seed: int | None
    actions: list[Any]


class Journal:
    """A file of calls; without one, nothing is written down.

    Args:
        descriptor: The file, open for appending.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self.descriptor = descriptor
        self._numbers = itertools.count()

    @contextmanager
    def call(self, subject: str, name: str, **arguments: Any) -> Iterator[None]:
        """Write down a call on a subject, and that it returned."""
        if self.descriptor is None:
            yield
            return
        key = f"{os.getpid()}.{next(self._numbers)}"
        self._write({"begin": key, "subject": subject, "call": name, **arguments})
        try:
            yield
        finally:
            self._write({"end": key})

    def _write(self, entry: dict[str, Any]) -> None:
        assert self.descriptor is not None
        data = codec.encode(entry)
        os.write(self.descriptor, _LENGTH.pack(len(data)) + data)  # one write, so that none mix

    def beat(self) -> None:
        """Say that something is going on, beside calls on the environment."""
        if self.descriptor is not None:
            self._write({"end": ""})

    def clear(self) -> None:
        """Forget everything."""
        if self.descriptor is not None:
            os.ftruncate(self.descriptor, 0)

    def size(self) -> int:
        """How much was written; it grows as long as something happens."""
        return 0 if self.descriptor is None else os.fstat(self.descriptor).st_size

    def whereabouts(self) -> Whereabouts | None:
        """What is being done, if anything is: the last call that has not returned."""
        begun: dict[str, dict[str, Any]] = {}
        entries = list(self._entries())
        for entry in entries:
            if "end" in entry:
                begun.pop(entry["end"], None)  # None for a beat
            else:
                begun[entry["begin"]] = entry
        if not begun:
            return None
        last = list(begun.values())[-1]
        seed, actions = _episode(last["subject"], entries)
        return Whereabouts(_in_words(last), seed, actions)

    def _entries(self) -> Iterator[dict[str, Any]]:
        assert self.descriptor is not None
        data = os.pread(self.descriptor, self.size(), 0)
        at = 0
        while at + _LENGTH.size <= len(data):
            (length,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size
            yield codec.decode(data[at : at + length])
            at += length


def _episode(subject: str, entries: list[dict[str, Any]]) -> tuple[int | None, list[Any]]:
    """Seed and actions of the episode that a subject is in."""
    seed: int | None = None
    actions: list[Any] = []
    for entry in entries:
        if entry.get("subject") != subject:
            continue
        if "episode" in entry:
            seed, actions = entry["episode"][0], list(entry["episode"][1])
        elif "action" in entry:
            actions.append(entry["action"])
    return seed, actions


def _in_words(entry: dict[str, Any]) -> str:
    if "action" in entry:
        return f"{entry['call']}({entry['action']!r})"
    if entry["call"] == "reset":
        return f"reset(seed={entry['episode'][0]})"
    return str(entry["call"])


@contextmanager
def new_journal() -> Iterator[Journal]:
    """A journal in a temporary file, which child processes may share."""
    import fcntl  # not on Windows, where nothing watches over the checks

    file: BinaryIO
    with tempfile.TemporaryFile() as file:
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
        yield Journal(file.fileno())
