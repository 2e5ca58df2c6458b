"""Where a store keeps its blobs: the interface of a shelf, and what it tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sandboxgym.store.blob import Blob
from sandboxgym.store.pieces import Pieces


@dataclass(frozen=True)
class Slot:
    """What a shelf knows of one snapshot.

    Attributes:
        state: The key of its state; None where it was stored without, or where it was dropped.
        dropped: Whether its state was dropped to stay within a budget.
    """

    state: bytes | None
    dropped: bool = False


@dataclass(frozen=True)
class Fault:
    """Something in a store that is not what was stored.

    Attributes:
        name: What is at fault: a file, or the kind and key of a blob.
        reason: What is wrong with it.
        keys: The snapshots that it makes unreadable.
    """

    name: str
    reason: str
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        unreadable = f" (unreadable: {', '.join(self.keys)})" if self.keys else ""
        return f"{self.name}: {self.reason}{unreadable}"


class Shelf(Protocol):
    """Keeps the blobs of snapshots, each once, and drops states where they are too many."""

    def add(self, pieces: Pieces) -> None:
        """Keep a snapshot."""

    def slot(self, frame: bytes) -> Slot | None:
        """What is known of a snapshot, or None where there is none."""

    def frames(self) -> list[bytes]:
        """All snapshots, by the keys of their frames, in the order in which they were added."""

    def read(self, key: bytes, limit: int) -> Blob:
        """Read a blob whose content has at most `limit` bytes."""

    def use(self, state: bytes) -> None:
        """Note that a state is in use."""

    def remove(self, frame: bytes) -> None:
        """Do without a snapshot that is not pinned."""

    def pin(self, frame: bytes) -> None:
        """Keep a snapshot and its state, whatever the budget, until it is unpinned as often."""

    def unpin(self, frame: bytes) -> None:
        """Take back one `pin`."""

    def is_pinned(self, frame: bytes) -> bool:
        """Whether this process has pinned a snapshot."""

    def size(self) -> int:
        """Bytes in use."""

    def gc(self, drop_corrupt: bool) -> None:
        """Free what no snapshot needs."""

    def verify(self) -> list[Fault]:
        """Read everything and name what is not as it should be."""

    def close(self) -> None:
        """Give back what is held of the system."""
