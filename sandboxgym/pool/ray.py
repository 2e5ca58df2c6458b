"""The Ray backend: each worker lives below an actor, anywhere in a cluster.

An actor starts its worker as the local backend does, and hands messages on. So environments run
alone in a process without threads of Ray's, and all that they start ends with them, even where the
actor is killed. Snapshots go from node to node through Ray's object store; the owner holds a
reference.

An actor that is asked something answers once, with what has come by then. While more is to come,
the owner asks again. That is half the cost of one of Ray's streams.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from typing import Any

from sandboxgym.core.errors import MissingDependencyError, WorkerLostError
from sandboxgym.pool.backend import Whereabouts
from sandboxgym.pool.handles import Blob, Parcel
from sandboxgym.pool.local import LocalBackend, LocalLink
from sandboxgym.pool.messages import Delivery, act

try:
    import ray
    from ray.exceptions import RayError
except ImportError as error:
    raise MissingDependencyError('Ray is not installed: pip install "sandboxgym[ray]"') from error

_ENDING = 30.0  # seconds until an actor has ended all below it; then it is killed
_FETCHING = 120.0  # seconds until a snapshot has come from another node; then it counts as lost
_SMALL = 100 * 1024  # bytes; Ray sends less than this beside a message, without its object store
_ASIDE = "ending"  # the group of methods that are answered while an actor waits for its worker


class RayBackend:
    """Starts workers in a Ray cluster.

    Where this process is not connected to one, it is connected as by `ray.init(address)`, until the
    pool is closed.

    Args:
        address: Of the cluster; None is the one that the variable RAY_ADDRESS names, or that runs
            on this machine, and where there is none, Ray is started here.
        **options: Of each actor, as for Ray's `options`: `num_cpus`, `resources`, `runtime_env` ...
            By default, an actor takes up no processor of Ray's account, and actors are spread over
            the nodes.
    """

    def __init__(self, address: str | None = None, **options: Any) -> None:
        self._owner = os.getpid()
        self._connected = not ray.is_initialized()
        if self._connected:
            ray.init(address)
        spread = {"scheduling_strategy": "SPREAD", **options}
        self._actors = ray.remote(concurrency_groups={_ASIDE: 1})(Station).options(**spread)
        self._links: set[RayLink] = set()

    def cores(self) -> int:
        """Those of all nodes."""
        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def start(self, makers: bytes) -> RayLink:
        """Start an actor, and a worker below it."""
        link = RayLink(self._actors.remote(), makers, self._links)
        self._links.add(link)
        return link

    def wait(self, links: Iterable[RayLink], timeout: float | None) -> list[RayLink]:
        """Wait until something has come."""
        known = list(links)
        lost = [link for link in known if link.lost is not None]
        if lost:
            return lost
        calls = {link.calls[0]: link for link in known}
        ready, _ = ray.wait(list(calls), num_returns=1, timeout=timeout)
        if ready:
            ready, _ = ray.wait(list(calls), num_returns=len(calls), timeout=0)
        return [calls[call] for call in ready]

    def contents(self, blob: Blob) -> bytes | None:
        """The bytes, from whatever node has them."""
        return blob if isinstance(blob, bytes) else _contents(blob)

    def close(self) -> None:
        """End all actors, and Ray where it was started for this pool."""
        if os.getpid() != self._owner or not ray.is_initialized():
            return
        closing = [
            link.actor.close.options(concurrency_group=_ASIDE).remote() for link in self._links
        ]
        if closing:
            ray.wait(closing, num_returns=len(closing), timeout=_ENDING)
        for link in self._links:
            ray.kill(link.actor)
        self._links.clear()
        if self._connected:
            ray.shutdown()


class RayLink:
    """A connection to an actor.

    Attributes:
        actor: The actor.
        calls: What it was asked and has not answered.
        lost: Why there will be nothing more from it.
        where: Where the worker runs, once it has greeted.
    """

    def __init__(self, actor: Any, makers: bytes, all_links: set[RayLink]) -> None:
        self.actor = actor
        self.calls: deque[Any] = deque([actor.begin.remote(makers)])
        self.lost: str | None = None
        self.where: Whereabouts | None = None
        self._all = all_links
        self._awaited = 1  # answers; the greeting is the first

    def send(self, orders: list[Any]) -> None:
        """Call the actor."""
        self.calls.append(self.actor.answer.remote(orders))
        self._awaited += len(orders)

    def arrived(self) -> list[Any]:
        """The answers that have come."""
        answers: list[Any] = []
        while self.lost is None and self.calls and ray.wait([self.calls[0]], timeout=0)[0]:
            try:
                found = ray.get(self.calls.popleft())
                if self.where is None:
                    self.where, found = found
                answers += found
            except RayError as error:
                self.lost = _reason(error)
        self._awaited -= len(answers)
        if self.lost is None and self._awaited and not self.calls:
            self.calls.append(self.actor.answer.remote([]))
        if self.lost is not None and not answers:
            raise WorkerLostError(self.lost)
        return answers

    def end(self) -> str:
        """End the worker and its actor."""
        self._all.discard(self)
        try:
            how = ray.get(
                self.actor.end.options(concurrency_group=_ASIDE).remote(), timeout=_ENDING
            )
        except RayError as error:
            how = _reason(error)
        ray.kill(self.actor)
        return str(how)


class Station:
    """What runs in an actor: a worker of the local kind, and the way to it."""

    def __init__(self) -> None:
        self._backend = LocalBackend()
        self._link: LocalLink | None = None
        self._open = 1  # answers that the worker owes; the greeting is the first
        self._fetches: set[int] = set()

    def begin(self, makers: bytes) -> tuple[Whereabouts, list[Any]]:
        """Start the worker: where it runs, and its greeting."""
        self._link = self._backend.start(makers)
        node = ray.get_runtime_context().get_node_id()
        return Whereabouts(node, self._link.pid), self.answer([])

    def answer(self, orders: list[Any]) -> list[Any]:
        """Give orders to the worker, and return the next of its answers, to these or others.

        Raises:
            WorkerLostError: The worker is gone.
        """
        assert self._link is not None
        if orders:
            # The one thing with a number that is asked of no lane is to give a snapshot away.
            self._fetches |= {number for number, place, _ in orders if number and place is None}
            self._link.send([[number, place, _brought(acts)] for number, place, acts in orders])
            self._open += len(orders)
        while self._open:
            self._backend.wait([self._link], None)
            answers = self._link.arrived()
            self._open -= len(answers)
            if answers:
                return [self._stored(*one) for one in answers]
        return []

    def end(self) -> str:
        """End the worker, whatever it is at; how it ended."""
        how = "it had not been started" if self._link is None else self._link.end()
        self._backend.close()
        return how

    def close(self) -> None:
        """Let the worker close its environments, and end it."""
        self._backend.close()

    def _stored(self, number: int, error: bytes | None, alive: bool, result: Any) -> list[Any]:
        """An answer, with a large snapshot in the object store."""
        if number in self._fetches:
            self._fetches.discard(number)
            if result is not None and len(result) > _SMALL:
                result = Parcel(ray.put(result))
        return [number, error, alive, result]


def _brought(acts: list[bytes | Delivery]) -> list[bytes]:
    """The acts, with snapshots out of the object store; without those that are lost."""
    brought = []
    for one in acts:
        if isinstance(one, Delivery):
            blob = _contents(one.parcel)
            if blob is not None:
                brought.append(act("put", one.key, blob))
        else:
            brought.append(one)
    return brought


def _contents(parcel: Parcel) -> bytes | None:
    try:
        found: bytes = ray.get(parcel.content, timeout=_FETCHING)
    except RayError:  # its node, or the actor that it belongs to, is gone
        return None
    return found


def _reason(error: Exception) -> str:
    """Why an actor is gone, on one line."""
    cause = getattr(error, "cause", None)
    text = " ".join(str(cause or error).split())
    return f"its actor is gone: {text}" if cause is None else text
