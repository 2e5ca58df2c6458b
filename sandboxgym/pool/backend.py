"""What a pool needs of the machine, or machines, that its workers run on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, TypeVar

from sandboxgym.pool.handles import Blob


class Whereabouts(NamedTuple):
    """Where a worker runs.

    Attributes:
        node: The machine's name within the cluster; "" where there is only this one.
        pid: The worker's process id there.
    """

    node: str
    pid: int


class Link(Protocol):
    """The owner's end of a connection to one worker."""

    @property
    def where(self) -> Whereabouts | None:
        """Where the worker runs; None where it is gone, or nowhere yet."""

    def send(self, orders: list[Any]) -> None:
        """Send a message (see `messages`) without waiting for anything.

        Raises:
            WorkerLostError: The worker is gone.
        """

    def arrived(self) -> list[Any]:
        """The answers that have come from the worker.

        Raises:
            WorkerLostError: The worker is gone. Answers that came before were returned before.
        """

    def end(self) -> str:
        """End the worker, where it has not ended yet, and say how it ended."""


LinkType = TypeVar("LinkType", bound=Link)


class Backend(Protocol[LinkType]):
    """Starts workers: processes that run `sandboxgym.pool.worker.serve`."""

    def cores(self) -> int:
        """How many processors there are for workers."""

    def start(self, makers: bytes) -> LinkType:
        """Start a worker that builds what the (pickled) `makers` make; it greets when it has.

        Raises:
            WorkerLostError: No worker can be started.
        """

    def wait(self, links: Iterable[LinkType], timeout: float | None) -> list[LinkType]:
        """Wait until something has come from a worker; from which ones. None in time: []."""

    def contents(self, blob: Blob) -> bytes | None:
        """The bytes of a snapshot that a worker has given away; None where they are lost."""

    def close(self) -> None:
        """End all workers, and wait until nothing is left of them."""
