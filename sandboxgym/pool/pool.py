"""`ForkPool`: many live environments in worker processes, and forks between them."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from sandboxgym.core.errors import (
    LaneBusyError,
    NoFreeLaneError,
    PoolClosedError,
    SnapshotNotFoundError,
    StateEncodingError,
    WorkerLostError,
)
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.pool.backend import Backend, Whereabouts
from sandboxgym.pool.crew import Crew
from sandboxgym.pool.handles import SnapshotHandle
from sandboxgym.pool.lanes import Lane, Order, act_of
from sandboxgym.pool.layout import EnvMaker, divide, limits_of, makers_of
from sandboxgym.pool.local import LocalBackend
from sandboxgym.pool.messages import (
    Command,
    Introduction,
    Reset,
    Restore,
    Step,
    Stepped,
    Take,
    stepped,
    unpack,
)
from sandboxgym.pool.posts import Post
from sandboxgym.pool.recovery import LaneRestarted
from sandboxgym.pool.signals import undisturbed
from sandboxgym.pool.transfers import Transfers

OnError: TypeAlias = Literal["raise", "return"]


class ForkPool:
    """Many live environments, and forks across them.

    The environments live in worker processes, several in each. A lane is one of them, by its
    number. Snapshots stay in the worker that took them; restoring one in a lane of the same worker
    costs no transfer. A worker that dies or hangs is replaced, and its lanes go on from where they
    were, brought there by their recipes: `restarts` tells of it.

    >>> import sandboxgym as sg
    >>> with sg.ForkPool("sandboxgym/ALFWorld-v0", 4, env_kwargs={"source": "synthetic"}) as pool:
    ...     first = pool.take()
    ...     obs, info = pool.reset(first, seed=7)
    ...     forks = pool.branch(first, 3)
    ...     results = pool.step({lane: "look" for lane in [first, *forks]})
    >>> len(results)
    4

    Use a pool in one thread at a time.

    Args:
        env: The id of an environment, a function that makes one, or a sequence with one of these
            for each lane. What is not forkable goes through `sandboxgym.forkable`.
        lanes: How many; may be left out where `env` is a sequence.
        env_kwargs: Arguments for `gymnasium.make`, where ids are given.
        workers: How many processes; by default one for each core that the backend has for them.
            Environments that wait for others (a shell, a browser) gain from one for each lane.
        time_limit: Seconds that a lane may take for one thing before its worker is replaced; one
            number for all lanes, or one for each. None sets no limit.
        patience: How many times more a thing is tried over which a worker was lost.
        backend: "local": processes of this machine. "ray": actors of a Ray cluster, the one that
            this process is connected to; or a `sandboxgym.pool.ray.RayBackend`, which takes
            options.

    Raises:
        Exception: What building the environments raised.
    """

    def __init__(
        self,
        env: EnvMaker | Sequence[EnvMaker],
        lanes: int | None = None,
        *,
        env_kwargs: dict[str, Any] | None = None,
        workers: int | None = None,
        time_limit: float | Sequence[float | None] | None = 300.0,
        patience: int = 3,
        backend: Literal["local", "ray"] | Backend[Any] = "local",
    ) -> None:
        makers = makers_of(env, lanes, env_kwargs or {})
        limits = limits_of(time_limit, len(makers))
        self._owner = os.getpid()
        self._lanes = [Lane(number, 0, limit) for number, limit in enumerate(limits)]
        self._numbers = itertools.count(1)
        self._done: dict[int, Order] = {}
        self._closed = False
        building = None if None in limits else max(60.0, *(limit or 0.0 for limit in limits))
        machines = _backend_of(backend)
        try:
            count = machines.cores() if workers is None else workers
            posts = divide(self._lanes, makers, count)
            self._post_of = {lane.number: post for post in posts for lane in post.lanes}
            self._crew = Crew(machines, posts, building, patience)
            self._transfers = Transfers(self._crew, self._post_of, self._numbers, self._hear)
            self._crew.greet()
        except BaseException:
            self._closed = True
            machines.close()
            raise

    # --- Lanes -----------------------------------------------------------------------------------

    def introduction(self, lane: int) -> Introduction:
        """Spaces, metadata and render mode of a lane's environment."""
        post = self._post_of[lane]
        return post.introductions[self._lanes[lane].place]

    @property
    def lanes(self) -> range:
        """All lanes."""
        return range(len(self._lanes))

    @property
    def free(self) -> list[int]:
        """The lanes that nobody uses."""
        return [lane.number for lane in self._lanes if not lane.in_use]

    def where(self, lane: int) -> Whereabouts | None:
        """The node and the process that a lane lives in; None while it is being replaced."""
        link = self._post_of[lane].link
        return None if link is None else link.where

    def take(self, near: SnapshotHandle | None = None) -> int:
        """Take a free lane into use: near a snapshot, or where most lanes are free.

        Raises:
            NoFreeLaneError: All are in use.
        """
        return self._take_free(1, [] if near is None else self._transfers.homes(near))[0]

    def release(self, *lanes: int) -> None:
        """Give lanes back, in whatever state they are."""
        for number in lanes:
            self._idle(number).in_use = False

    def last(self, lane: int) -> Stepped | None:
        """What a lane has seen last (after a reset with reward 0), or None before its reset."""
        seen = self._lanes[lane].seen
        return None if seen is None else stepped(seen)

    # --- One thing after the other ---------------------------------------------------------------

    def reset(
        self, lane: int, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in a lane."""
        return self._one(lane, Reset(seed, options))  # type: ignore[no-any-return]

    def step(
        self, actions: Mapping[int, Any], *, on_error: OnError = "raise"
    ) -> dict[int, Stepped]:
        """Take an action in each of some lanes; see `do` for what errors do."""
        return self.do({lane: Step(action) for lane, action in actions.items()}, on_error=on_error)

    def snapshot(self, lane: int) -> SnapshotHandle:
        """Take a snapshot of a lane; it stays where it is. `fetch` gets it from there."""
        return self._one(lane, Take())  # type: ignore[no-any-return]

    def restore(
        self, lane: int, snapshot: SnapshotHandle | Snapshot, *, seed: int | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Return to the moment of a snapshot, in any lane; running statistics are rewound too."""
        return self._one(lane, Restore(snapshot, seed))  # type: ignore[no-any-return]

    def branch(self, lane: int, k: int, *, seeds: Sequence[int] | None = None) -> list[int]:
        """Make `k` more lanes continue from where a lane is: free ones, of its worker if possible.

        Args:
            lane: The lane; it is not changed, and not among the result.
            k: How many.
            seeds: One for each, for randomness of its own. None makes exact twins.

        Raises:
            NoFreeLaneError: Fewer than `k` lanes are free.
            ValueError: The number of seeds is not `k`.
        """
        if k < 0 or (seeds is not None and len(seeds) != k):
            raise ValueError(f"branch needs k >= 0 and one seed a lane; got k={k}, seeds={seeds}")
        forks = self._take_free(k, [self._post_of[lane]])
        try:
            moment = self.snapshot(lane)
            self.do(
                {fork: Restore(moment, seeds[i] if seeds else None) for i, fork in enumerate(forks)}
            )
        except BaseException:
            for fork in forks:
                self._lanes[fork].in_use = False
            raise
        return forks

    def fetch(self, snapshot: SnapshotHandle) -> Snapshot:
        """Get a snapshot from its worker, as one that can be saved, sent and restored anywhere.

        Raises:
            LaneBusyError: It has to be made again, and all lanes are at work.
        """
        try:
            return unpack(self._transfers.contents(snapshot))
        except (SnapshotNotFoundError, WorkerLostError):
            self._make_again(snapshot)
        return unpack(self._transfers.contents(snapshot))

    def put(self, snapshot: Snapshot) -> SnapshotHandle:
        """Give the pool a snapshot, to be restored often."""
        return self._transfers.put(snapshot)

    # --- Many things at once ---------------------------------------------------------------------

    def do(self, commands: Mapping[int, Command], *, on_error: OnError = "raise") -> dict[int, Any]:
        """Do one thing in each of some lanes, at once, and wait until all are done.

        Args:
            commands: `Reset`, `Step`, `Take`, `Restore`, `Call` or `SetAttribute`, by lane.
            on_error: "raise" raises the error of the first lane that has one, when all are done;
                what the others have seen is in `last`. "return" gives errors as results.

        Returns:
            The results, by lane.

        Raises:
            LaneBusyError: A lane is at work already. Nothing was begun.
            LanePoisonedError: What a lane was asked for ended one worker after the other.
        """
        self.send(commands)
        return self.wait(commands, on_error=on_error)

    def send(self, commands: Mapping[int, Command]) -> None:
        """Begin one thing in each of some lanes, without waiting; `receive` brings the results."""
        self._check_usable()
        given = self._transfers.with_handles(commands)
        orders = [self._order(number, command) for number, command in given.items()]
        self._transfers.bring(given)
        with undisturbed():
            for order in orders:
                assert order.lane is not None
                order.lane.busy = True
                order.lane.in_use |= isinstance(order.command, Reset | Restore)
            self._crew.give(zip(map(self._post_of.__getitem__, given), orders, strict=True))

    def wait(self, lanes: Iterable[int], *, on_error: OnError = "raise") -> dict[int, Any]:
        """Wait until these lanes are done with what they were sent; the results, by lane."""
        numbers = list(lanes)
        for number in numbers:
            if not (self._lanes[number].busy or number in self._done):
                raise LaneBusyError(f"lane {number} is at nothing: send something first")
        while any(number not in self._done for number in numbers):
            self._check_usable()
            self._hear(None)
        return self._results(numbers, on_error)

    def receive(
        self, timeout: float | None = None, *, on_error: OnError = "raise"
    ) -> dict[int, Any]:
        """Wait until at least one lane is done, or the timeout is over; the results, by lane.

        An error that is raised takes one lane's place; the other results come with the next call.
        """
        self._check_usable()
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._done and any(lane.busy for lane in self._lanes):
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left < 0:
                break
            self._hear(left)
        if on_error == "raise":
            for number, order in self._done.items():
                if order.error is not None:
                    return self._results([number], on_error)
        return self._results(list(self._done), on_error)

    def take_restarts(self) -> list[LaneRestarted]:
        """The lanes whose worker was replaced, since this was asked last."""
        restarts = list(self._crew.restarts)
        self._crew.restarts.clear()
        return restarts

    def close(self) -> None:
        """Close all environments and end all workers."""
        if not self._closed:
            self._closed = True
            self._crew.close()

    def __enter__(self) -> ForkPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- Within ----------------------------------------------------------------------------------

    def _one(self, lane: int, command: Command) -> Any:
        return self.do({lane: command})[lane]

    def _hear(self, timeout: float | None) -> None:
        self._crew.hear(timeout)
        with undisturbed():
            while self._crew.finished:
                order = self._crew.finished.popleft()
                if order.lane is not None:
                    self._done[order.lane.number] = order

    def _results(self, lanes: Iterable[int], on_error: OnError) -> dict[int, Any]:
        done = {number: self._done.pop(number) for number in lanes}
        if on_error == "raise":
            for order in done.values():
                if order.error is not None:
                    raise order.error
        return {
            number: order.result if order.error is None else order.error
            for number, order in done.items()
        }

    def _order(self, number: int, command: Command) -> Order:
        lane, key = self._idle(number), next(self._numbers)
        try:
            return Order(key, lane, command, act_of(command, key), key)
        except StateEncodingError as error:
            raise StateEncodingError(f"lane {number}: {error}") from None

    def _idle(self, number: int) -> Lane:
        """A lane that is not at work, and of whose work every result was received."""
        if number not in self.lanes:
            raise IndexError(f"there is no lane {number} in a pool of {len(self._lanes)}")
        lane = self._lanes[number]
        if lane.busy or number in self._done:
            raise LaneBusyError(
                f"lane {number} is at work, or its last result waits: call receive() first"
            )
        return lane

    def _check_usable(self) -> None:
        if self._closed:
            raise PoolClosedError("the pool was closed: make another one")
        if os.getpid() != self._owner:
            raise PoolClosedError(
                "this process is a fork of the one that owns the pool, and two cannot use it: make "
                "a pool here"
            )

    def _take_free(self, k: int, near: Sequence[Post]) -> list[int]:
        """Take `k` free lanes into use: of these workers first, then of others on their nodes.

        Among equals, those of the worker with most of them.
        """
        free: dict[int, list[int]] = {}
        for number in self.free:
            free.setdefault(self._post_of[number].number, []).append(number)
        if sum(map(len, free.values())) < k:
            raise NoFreeLaneError(
                f"{k} lanes are needed and {len(self.free)} of {len(self._lanes)} are free: "
                "release some, make a pool with more, or queue the branches (BranchQueue)"
            )
        workers = {post.number for post in near}
        nodes = {_node_of(post) for post in near}
        close = {n: (n in workers, _node_of(self._crew.posts[n]) in nodes) for n in free}
        taken: list[int] = []
        while len(taken) < k:
            post = max(free, key=lambda n: (close[n], len(free[n]), -n))
            taken.append(free[post].pop(0))
            if not free[post]:
                del free[post]
        for number in taken:
            self._lanes[number].in_use = True
        return taken

    def _make_again(self, handle: SnapshotHandle) -> None:
        """Have a lane make a snapshot again whose workers were lost; it then goes on as it was."""
        lane = next((lane for lane in self._lanes if not lane.in_use), None)
        if lane is not None:
            self._one(lane.number, Restore(handle))
            lane.in_use = False
            return
        lane = next((lane for lane in self._lanes if not lane.busy), None)
        if lane is None:
            raise LaneBusyError("all lanes are at work, and the snapshot has to be made again")
        before = self.snapshot(lane.number)
        self._one(lane.number, Restore(handle))
        self._one(lane.number, Restore(before))


def _backend_of(given: Literal["local", "ray"] | Backend[Any]) -> Backend[Any]:
    if given == "local":
        return LocalBackend()
    if given == "ray":
        from sandboxgym.pool.ray import RayBackend

        return RayBackend()
    if isinstance(given, str):
        raise ValueError(
            f"backend {given!r} is not 'local', 'ray' or an object that starts workers"
        )
    return given


def _node_of(post: Post) -> str | None:
    where = None if post.link is None else post.link.where
    return None if where is None else where.node
