"""A content-addressed store of snapshots: memory, disk, recipe."""

from sandboxgym.store.shelf import Fault
from sandboxgym.store.store import Entry, SnapshotStore

__all__ = ["Entry", "Fault", "SnapshotStore"]
