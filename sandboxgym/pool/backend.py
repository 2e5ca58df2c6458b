"""What a pool needs of the machine, or machines, that its workers run on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Link(Protocol):
    """The owner's end of a connection to one worker."""

    def send(self, message: bytes) -> None:
        """Send a message without waiting for anything.

        Raises:
            WorkerLostError: The worker is gone.
        """

    def arrived(self) -> list[bytes]:
        """The messages that have come from the worker.

        Raises:
            WorkerLostError: The worker is gone. Messages that came before were returned before.
        """

    def end(self) -> str:
        """End the worker, where it has not ended yet, and say how it ended."""


LinkType = TypeVar("LinkType", bound=Link)


class Backend(Protocol[LinkType]):
    """Starts workers: processes that run `sandboxgym.pool.worker.serve`."""

    def start(self, makers: bytes) -> LinkType:
        """Start a worker that builds what the (pickled) `makers` make; it greets when it has.

        Raises:
            WorkerLostError: No worker can be started.
        """

    def wait(self, links: Iterable[LinkType], timeout: float | None) -> list[LinkType]:
        """Wait until something has come from a worker; from which ones. None in time: []."""

    def close(self) -> None:
        """End all workers, and wait until nothing is left of them."""
