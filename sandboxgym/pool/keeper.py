"""The program of the keeper: a small process between the owner of a pool and its workers.

It is forked into workers, which therefore start in milliseconds and share the memory of what is
imported here. It inherits and reaps all that workers leave behind, and watches the owner: when that
closes the connection or dies, in whatever way, it ends all that descends from it, and itself.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import NoReturn

from sandboxgym.mechanisms.process import guard, linux, nursery
from sandboxgym.mechanisms.process.wire import Connection
from sandboxgym.pool import worker
from sandboxgym.pool.wire import Frames

GRACE = 4.0
"""Seconds for what a worker had started to notice that it ended, and to clean up what is theirs."""
_CLOSING = 3.0  # seconds for workers to close their environments when the owner is gone
_MARK = "SANDBOXGYM_POOL_WORKER"  # a variable by which the descendants of a worker are known


def main(descriptor: int) -> None:
    """Serve the owner until it is gone."""
    owner = os.getppid()
    linux.become_subreaper()
    gc.collect()
    gc.freeze()  # workers share these objects; collecting among them would copy their pages
    keeper = Keeper(Connection.of(descriptor), owner)
    try:
        keeper.watch()
    except ConnectionError:
        pass  # it ended while it waited for an answer
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_all(keeper.workers)


class Keeper(nursery.Nursery):
    """Starts and ends workers as the owner asks.

    Attributes:
        workers: Process ids of those that live.
        ended: When others ended, by process id, as long as it matters.
    """

    def __init__(self, control: Connection, owner: int) -> None:
        super().__init__(control, owner)
        self.workers: set[int] = set()
        self.ended: dict[int, float] = {}

    def answer(self) -> bool:
        """Do one thing that the owner asks for; False where it is gone."""
        try:
            message = self.control.receive()
            if message.descriptor is None:
                result = self.end(message.body["end"])
            else:
                result = self.start(message.descriptor, message.body["makers"])
            self.control.send({"number": message.body["number"], "result": result})
        except (EOFError, ConnectionError):
            return False
        return True

    def start(self, descriptor: int, makers: bytes) -> int:
        """Fork a worker, whose connection to the owner is `descriptor`."""
        pid = os.fork()
        if pid == 0:
            self.control.close()
            _be_worker(descriptor, makers)
        os.close(descriptor)
        self.fates.pop(pid, None)  # of an earlier process with this id
        self.workers.add(pid)
        return pid

    def reap(self) -> None:
        """Wait for all that has ended, and end what dead workers have left."""
        super().reap()
        for pid in self.workers & self.fates.keys():
            self._note_end(pid)
        now = time.monotonic()
        late = {pid for pid, ended in self.ended.items() if now - ended > GRACE}
        if late:
            for pid in set(guard.children()) - self.workers:
                if _worker_of(pid) in late:
                    os.kill(pid, signal.SIGKILL)
        self.ended = {pid: at for pid, at in self.ended.items() if now - at < 2 * GRACE}

    def end(self, pid: int) -> int | None:
        """End a worker if it has not ended; its wait status."""
        status = super().end(pid)
        self._note_end(pid)
        return status

    def _note_end(self, pid: int) -> None:
        self.workers.discard(pid)
        self.ended.setdefault(pid, time.monotonic())


def _be_worker(descriptor: int, makers: bytes) -> NoReturn:
    status = 1
    try:
        linux.die_with_parent()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ[_MARK] = str(os.getpid())
        worker.serve(Frames.of(descriptor), makers)
        status = 0
    except BaseException:  # noqa: BLE001 - no worker may go on as a keeper
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _worker_of(pid: int) -> int | None:
    """The worker below which a process was started."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it has just ended, or is another user's
        return None
    marks = [line for line in variables if line.startswith(_MARK.encode() + b"=")]
    return int(marks[0].partition(b"=")[2]) if marks else None


def end_all(workers: set[int]) -> None:
    """End the workers, which have lost their owner, and then what is left of their descendants."""
    if _all_gone(_CLOSING):
        return
    for pid in workers & set(guard.children()):
        os.kill(pid, signal.SIGKILL)
    if not _all_gone(GRACE):
        nursery.end_all()


def _all_gone(seconds: float) -> bool:
    """Wait for all children, adopted ones too; whether there are none any more."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
        except ChildProcessError:
            return True
    return False
