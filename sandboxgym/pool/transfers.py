"""Snapshots on their way: from outside into a pool, and from worker to worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sandboxgym.core.errors import SnapshotNotFoundError, SpecMismatchError
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.pool.crew import Crew
from sandboxgym.pool.handles import SnapshotHandle
from sandboxgym.pool.lanes import Order
from sandboxgym.pool.messages import Command, Restore, act, pack, seen_of
from sandboxgym.pool.posts import Post
from sandboxgym.pool.recovery import Moment
from sandboxgym.pool.signals import undisturbed


class Transfers:
    """Brings snapshots to where they are to be restored.

    Args:
        crew: The workers.
        post_of: In whose charge each lane is.
        numbers: New numbers for orders and snapshots.
        hear: Waits for answers, and keeps the results of lanes.
    """

    def __init__(
        self,
        crew: Crew,
        post_of: Mapping[int, Post],
        numbers: Iterator[int],
        hear: Callable[[float | None], None],
    ) -> None:
        self.crew = crew
        self.post_of = post_of
        self.numbers = numbers
        self.hear = hear

    def homes(self, handle: SnapshotHandle) -> list[Post]:
        """The workers that hold a snapshot."""
        return [post for post in self.crew.posts if handle.key in post.hot]

    def put(self, snapshot: Snapshot) -> SnapshotHandle:
        """A handle for a snapshot that came from outside; no worker has it yet."""
        blob = pack(snapshot)
        moment = Moment(act("load", blob), step=snapshot.step)
        dropped = self.crew.dropped
        handle = SnapshotHandle(next(self.numbers), moment, seen_of(snapshot.last), dropped)
        handle.blob = blob
        return handle

    def with_handles(self, commands: Mapping[int, Command]) -> dict[int, Command]:
        """The commands, with handles in the place of snapshots that came from outside.

        Raises:
            SpecMismatchError: A handle is of another pool.
        """
        put: dict[int, SnapshotHandle] = {}
        given: dict[int, Command] = {}
        for lane, command in commands.items():
            if isinstance(command, Restore):
                snapshot = command.snapshot
                if isinstance(snapshot, Snapshot):
                    if id(snapshot) not in put:
                        put[id(snapshot)] = self.put(snapshot)
                    command = Restore(put[id(snapshot)], command.seed)
                elif snapshot.dropped is not self.crew.dropped:
                    raise SpecMismatchError(
                        "the handle is of another pool: pass what fetch() of that one returns"
                    )
            given[lane] = command
        return given

    def bring(self, commands: Mapping[int, Command]) -> None:
        """Fetch the snapshots that are to be restored where they are not."""
        missing = {}
        for lane, command in commands.items():
            if isinstance(command, Restore):
                handle = command.snapshot
                assert isinstance(handle, SnapshotHandle)
                if handle.key not in self.post_of[lane].hot:
                    missing[handle.key] = handle
        if missing:
            self.fetch(list(missing.values()))

    def contents(self, handle: SnapshotHandle) -> bytes:
        """A snapshot as bytes.

        Raises:
            SnapshotNotFoundError: No worker holds it any more.
            Exception: The worker that holds it cannot give it away.
        """
        if handle.blob is not None:
            found = self.crew.backend.contents(handle.blob)
            if found is not None:
                return found
            handle.blob = None
        for order in self.fetch([handle]):
            if order.error is not None:
                raise order.error
        found = None if handle.blob is None else self.crew.backend.contents(handle.blob)
        if found is None:
            raise SnapshotNotFoundError(f"no worker holds {handle!r} any more")
        return found

    def fetch(self, handles: Sequence[SnapshotHandle]) -> list[Order]:
        """Have the workers that hold snapshots give them away, for others.

        One that cannot be had stays without, and is then made again by its recipe.
        """
        asked = []
        for handle in handles:
            homes = self.homes(handle)
            if homes and handle.blob is None:
                order = Order(next(self.numbers), None, None, act("fetch", handle.key))
                asked.append((order, handle))
                with undisturbed():
                    self.crew.give([(homes[0], order)])
        while not all(order.done for order, _ in asked):
            self.hear(None)
        for order, handle in asked:
            handle.blob = order.result
        return [order for order, _ in asked]
