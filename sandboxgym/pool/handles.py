"""A snapshot that stays in the worker that took it; the user holds a handle."""

from __future__ import annotations

import weakref
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from sandboxgym.pool.recovery import Moment


@dataclass(frozen=True, slots=True)
class Parcel:
    """A snapshot's bytes that lie in a store of the backend, and may be lost there.

    Attributes:
        content: What the backend knows them by.
    """

    content: Any


Blob: TypeAlias = bytes | Parcel
"""A snapshot on its way, as what `Backend.contents` takes."""


class SnapshotHandle:
    """A moment of a lane, that any lane of the pool can return to.

    The snapshot itself lies in the memory of worker processes, until nothing refers to the handle
    any more. `pool.fetch(handle)` gets it as an ordinary `Snapshot`. Should its workers be lost, it
    is made again from its recipe.

    Attributes:
        key: Its name among the snapshots of the pool.
        moment: What led to it.
        seen: What its lane had seen last, encoded.
        blob: The snapshot for other workers, once it was needed there.
        dropped: Where its key goes when nothing refers to it any more; one for each pool.
    """

    __slots__ = ("__weakref__", "blob", "dropped", "key", "moment", "seen")

    def __init__(self, key: int, moment: Moment, seen: bytes, dropped: deque[int]) -> None:
        self.key = key
        self.moment = moment
        self.seen = seen
        self.dropped = dropped
        self.blob: Blob | None = None
        weakref.finalize(self, dropped.append, key).atexit = False

    @property
    def step(self) -> int:
        """Number of actions since the reset."""
        return self.moment.step

    def __repr__(self) -> str:
        return f"<SnapshotHandle {self.key} at step {self.step}>"
