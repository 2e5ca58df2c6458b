"""The local backend: workers are processes of this machine, below a keeper."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import time
import weakref
from collections.abc import Iterable
from typing import Any

from sandboxgym.core.errors import WorkerLostError
from sandboxgym.mechanisms.process import program
from sandboxgym.mechanisms.process.wire import Connection
from sandboxgym.pool.backend import Whereabouts
from sandboxgym.pool.handles import Blob
from sandboxgym.pool.messages import envelope, opened
from sandboxgym.pool.wire import Frames

_ANSWER_OF_KEEPER = 120.0  # seconds; it only ever forks, kills and waits, once it has started
_ENDING = 40.0  # seconds until the keeper and all below it have ended


class LocalBackend:
    """Starts workers in a keeper, and another keeper where that one was killed.

    The keeper ends, and all workers with it, when nothing refers to the backend any more, or this
    process ends.
    """

    def __init__(self) -> None:
        self._keeper: KeeperHandle | None = None

    def cores(self) -> int:
        """Those that this process may use."""
        return len(os.sched_getaffinity(0))

    def start(self, makers: bytes) -> LocalLink:
        """Start a worker."""
        if self._keeper is None or not self._keeper.alive:
            self._keeper = KeeperHandle()
        return self._keeper.start(makers)

    def wait(self, links: Iterable[LocalLink], timeout: float | None) -> list[LocalLink]:
        """Wait until something has come, and meanwhile send what could not be sent at once."""
        by_number = {link.frames.fileno(): link for link in links}
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            poller = select.poll()
            for number, link in by_number.items():
                poller.register(number, select.POLLIN | (link.frames.stuck and select.POLLOUT))
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = poller.poll(None if left is None else left * 1000)
            come = [by_number[number] for number, event in ready if event & ~select.POLLOUT]
            if come or not ready:
                return come
            for number, _ in ready:
                by_number[number].flush()

    def contents(self, blob: Blob) -> bytes | None:
        """Snapshots come to the owner as bytes."""
        assert isinstance(blob, bytes)
        return blob

    def close(self) -> None:
        """End the keeper, which ends all workers."""
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None


class LocalLink:
    """A connection to a worker process.

    Attributes:
        frames: The messages on it.
        pid: The worker's process id.
    """

    def __init__(self, end: socket.socket, pid: int, keeper: KeeperHandle) -> None:
        self.frames = Frames(end)
        self.pid = pid
        self._keeper = keeper
        keeper.frames.add(self.frames)

    @property
    def where(self) -> Whereabouts:
        """Where the worker runs, or ran."""
        return Whereabouts("", self.pid)

    def send(self, orders: list[Any]) -> None:
        """Send a message as far as there is room; `LocalBackend.wait` sends the rest."""
        try:
            self.frames.post(envelope(orders))
        except OSError as error:
            raise WorkerLostError("the connection to the worker process is closed") from error

    def flush(self) -> None:
        """Send more of what waits; that the worker is gone shows when it is listened to."""
        try:
            self.frames.flush()
        except OSError:
            self.frames.forget()

    def arrived(self) -> list[Any]:
        """The answers that have come."""
        try:
            return [answer for message in self.frames.arrived() for answer in opened(message)]
        except EOFError:
            raise WorkerLostError("the worker process closed its connection") from None

    def end(self) -> str:
        """End the process."""
        self.close()
        return self._keeper.end(self.pid)

    def close(self) -> None:
        """Hang up: the worker closes its environments, and ends by itself."""
        self._keeper.frames.discard(self.frames)
        self.frames.close()


class KeeperHandle:
    """The owner's side of a keeper process.

    Attributes:
        frames: The connections to its workers.
    """

    def __init__(self) -> None:
        self.frames: set[Frames] = set()
        self._asked = 0
        self._control, theirs = Connection.pair()
        # Workers are there to use the cores, unless the user has said otherwise.
        environment = program.ONE_THREAD | os.environ
        try:
            self._process = program.start("sandboxgym.pool.keeper", theirs, environment)
        except BaseException:
            self._control.close()
            raise
        finally:
            theirs.close()
        self._end = weakref.finalize(
            self, _end_keeper, os.getpid(), self._process, self._control, self.frames
        )

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def start(self, makers: bytes) -> LocalLink:
        """Fork a worker."""
        ours, theirs = socket.socketpair()
        try:
            pid = self._ask({"makers": makers}, theirs.fileno())
        except (EOFError, OSError) as error:
            ours.close()
            raise WorkerLostError(
                f"the keeper of the pool's workers does not answer ({error!r}); what it printed "
                "says why"
            ) from error
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return LocalLink(ours, pid, self)

    def end(self, pid: int) -> str:
        """End a worker and say how it ended."""
        try:
            status = self._ask({"end": pid})
        except (EOFError, OSError):
            return "the keeper, which knows how it ended, is gone too"
        if status is None:
            return "how is not known"
        return f"its process {program.ending(os.waitstatus_to_exitcode(status))}"

    def close(self) -> None:
        """End the keeper and all below it."""
        self._end()

    def _ask(self, request: dict[str, Any], descriptor: int | None = None) -> Any:
        """Have the keeper do something; what an interrupt has left unread is passed over."""
        self._asked += 1
        deadline = time.monotonic() + _ANSWER_OF_KEEPER
        request = {**request, "number": self._asked}
        self._control.send(request, descriptor=descriptor, deadline=deadline)
        while True:
            answer = self._control.receive(deadline=deadline).body
            if answer["number"] == self._asked:
                return answer["result"]


def _end_keeper(
    owner: int, process: subprocess.Popen[bytes], control: Connection, frames: set[Frames]
) -> None:
    if os.getpid() != owner:  # a fork of the owner drops its copies
        process.returncode = 0
        control.close()
        for connection in frames:
            connection.forsake()
        return
    for connection in frames:
        connection.close()
    control.hang_up()
    program.end(process, _ENDING)
