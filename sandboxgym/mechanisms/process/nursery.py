"""The program of the nursery: a small process between the owner and its worker processes.

It inherits every worker and template whose own parent ends, and waits for it when it ends, so there
are no zombies. It watches the owner: when that closes the connection or dies, in whatever way, it
ends all that descends from it, removes the folder for temporary files, and ends itself.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import traceback
from typing import NoReturn

from sandboxgym.mechanisms.process import guard, linux, worker
from sandboxgym.mechanisms.process.scratch import Scratch
from sandboxgym.mechanisms.process.wire import Connection

_LOOK_AT_OWNER = 1000  # milliseconds; how long its death can go unnoticed where a fork of it lives
_MOST_FATES = 4096


def main(descriptor: int) -> None:
    """Start the first worker, which builds the environment, and watch."""
    owner = os.getppid()
    linux.become_subreaper()
    control = Connection.of(descriptor)
    try:
        message = control.receive()
    except (EOFError, ConnectionError):
        return  # the owner ended before it had asked for anything
    assert message.descriptor is not None
    scratch = Scratch.find()
    try:
        first = Connection.of(message.descriptor)
        pid = os.fork()
        if pid == 0:
            control.close()
            _run_worker(first, scratch, message.body["factory"])
        first.close()
        folder = None if scratch.stays else scratch.path
        control.send({"folder": folder, "private": scratch.private, "first": pid})
        Nursery(control, owner).watch()
    except ConnectionError:
        pass  # it ended while it waited for this
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_all()
        scratch.remove()


def _run_worker(connection: Connection, scratch: Scratch, factory: bytes) -> NoReturn:
    try:
        worker.run(connection, scratch, factory)
    except BaseException:  # noqa: BLE001 - no worker or fork of one may go on as a nursery
        traceback.print_exc()
    finally:
        os._exit(1)


class Nursery:
    """Watches the owner, and knows how each worker ended.

    Attributes:
        fates: Wait status by process id, of workers that ended.
    """

    def __init__(self, control: Connection, owner: int) -> None:
        self.control = control
        self.owner = owner
        self.fates: dict[int, int] = {}

    def watch(self) -> None:
        """Reap and answer until the owner is gone."""
        woken, wakes = socket.socketpair()
        for end in (woken, wakes):
            end.setblocking(False)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, _exit)
        poller = select.poll()
        for descriptor in (woken.fileno(), self.control.fileno()):
            poller.register(descriptor, select.POLLIN)
        try:
            while os.getppid() == self.owner:
                self.reap()
                ready = dict(poller.poll(_LOOK_AT_OWNER))
                if woken.fileno() in ready:
                    woken.recv(4096)
                if self.control.fileno() in ready and not self.answer():
                    return
        finally:
            signal.set_wakeup_fd(-1)

    def reap(self) -> None:
        """Wait for all that has ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.fates.pop(pid, None)
            self.fates[pid] = status
            if len(self.fates) > _MOST_FATES:
                del self.fates[next(iter(self.fates))]

    def answer(self) -> bool:
        """End the worker that the owner asks to end, and say how it ended; False: owner is gone."""
        try:
            pid: int = self.control.receive().body["end"]
            self.control.send({"ended": pid, "status": self.end(pid)})
        except (EOFError, ConnectionError):
            return False
        return True

    def end(self, pid: int) -> int | None:
        """End a worker if it has not ended; its wait status, or None where nobody knows it."""
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return self.fates.get(pid)
        os.kill(pid, signal.SIGKILL)
        return os.waitpid(pid, 0)[1]


def end_all() -> None:
    """End all descendants. What they leave behind comes to this process, so in the end none is."""
    while pids := guard.children():
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)


def _exit(*_: object) -> None:
    raise SystemExit
