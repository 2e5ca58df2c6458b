"""A process of their own for the checks, and one that watches over it.

An environment can hang in C code, call `os._exit`, crash, or take all memory; whatever runs in its
process then never reports. So there are three::

    the caller  ->  the supervisor  ->  the bench
    (asks)          (watches)           (runs the checks)

The bench is forked from the supervisor, and the supervisor from the caller, so that any function
can be a factory or a policy. The supervisor ends a bench that makes no progress, or takes too much
memory or time, with everything that it started; the next check gets a new one. What the environment
was doing is in the journal, which the supervisor can read. What it prints goes to the supervisor
too, which keeps the end of it.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import NoReturn

from sandboxgym.conformance import processes
from sandboxgym.conformance.bench import be_bench
from sandboxgym.conformance.check import Check
from sandboxgym.conformance.checks import BY_NUMBER
from sandboxgym.conformance.journal import Journal, new_journal
from sandboxgym.conformance.lab import Lab
from sandboxgym.conformance.options import Options
from sandboxgym.conformance.report import CheckResult, Facts
from sandboxgym.conformance.watch import Watch
from sandboxgym.conformance.wire import (
    pack_request,
    pack_result,
    unpack_request,
    unpack_result,
)
from sandboxgym.core.errors import SandboxGymError

TICK = 0.1
KEPT_OUTPUT = 4000
KEPT_STACK = 2000
SHOW_STACK_WITHIN = 0.3
HANGS_UP_WITHIN = 1.0
_OURS = str(Path(__file__).parent)

MakeLab = Callable[[Journal], Lab]


class SupervisorError(SandboxGymError):
    """The process that watches over the checks has ended before they did."""


class Isolated:
    """Runs checks in processes of their own, which are started with the first one."""

    def __init__(self, make_lab: MakeLab, options: Options) -> None:
        self._make_lab = make_lab
        self._options = options
        self._connection: Connection | None = None
        self._pid = 0

    def run(self, check: Check, seconds: float | None) -> tuple[CheckResult, Facts]:
        """Run a check; where it does not end within so many seconds, stop it."""
        connection = self._connection or self._start()
        try:
            connection.send_bytes(pack_request(check.number, seconds))
            return unpack_result(connection.recv_bytes())
        except (EOFError, ConnectionError) as error:
            self.close()
            raise SupervisorError(
                "the process that watches over the conformance suite was killed; run it again"
            ) from error
        except BaseException:  # an interrupt: the answer that is under way is nobody's
            self.close()
            raise

    def _start(self) -> Connection:
        ours, theirs = Pipe()
        self._pid = processes.fork()
        if self._pid == 0:
            ours.close()
            _supervise(theirs, self._make_lab, self._options)
        theirs.close()
        self._connection = ours
        return ours

    def close(self) -> None:
        """End all processes."""
        if self._connection is not None:
            self._connection.close()  # which the supervisor notices
            self._connection = None
            os.waitpid(self._pid, 0)


def _supervise(caller: Connection, make_lab: MakeLab, options: Options) -> NoReturn:
    """Be the supervisor: answer requests until the caller is gone."""
    try:
        os.setsid()  # an interrupt from the terminal is for the caller
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        processes.adopt_orphans()
        with new_journal() as journal:
            _Supervisor(caller, make_lab, options, journal).serve()
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        processes.kill_descendants(os.getpid())
        os._exit(0)


class _Supervisor:
    def __init__(
        self, caller: Connection, make_lab: MakeLab, options: Options, journal: Journal
    ) -> None:
        self._caller = caller
        self._make_lab = make_lab
        self._options = options
        self._journal = journal
        self._parent = os.getppid()
        self._bench: _Bench | None = None

    def serve(self) -> None:
        """Answer requests; returns when the caller is gone."""
        try:
            while os.getppid() == self._parent:
                if wait([self._caller], timeout=TICK):
                    number, seconds = unpack_request(self._caller.recv_bytes())
                    self._caller.send_bytes(self._answer(BY_NUMBER[number], seconds))
                elif self._bench:
                    self._bench.listen()
        except (EOFError, ConnectionError):
            return

    def _answer(self, check: Check, seconds: float | None) -> bytes:
        """The result of a check, from the bench or, where that has to be ended, in its place."""
        bench = self._bench = self._bench or _Bench(self._make_lab(self._journal), self._caller)
        watch = Watch(check, self._options, self._journal, seconds)
        start = time.monotonic()
        bench.ask(check)
        stopped: CheckResult | None = None
        while stopped is None:
            bench.wait_or([self._caller])
            if self._caller.poll() or os.getppid() != self._parent:
                raise EOFError  # the caller asks nothing before it has the answer: it is gone
            ended = bench.has_ended()  # before looking for an answer, which may be its last
            if bench.connection.poll():
                try:
                    return bench.connection.recv_bytes()
                except EOFError:
                    ended = ended or bench.end()
            if ended:
                stopped = watch.died(ended)
            else:
                stopped = watch.verdict()
                if stopped is not None and stopped.status == "failed":
                    bench.show_stack()
            processes.reap_children(but=bench.pid)
        stopped = replace(
            stopped,
            seconds=time.monotonic() - start,
            traceback=bench.stack(),
            output=bench.printed,
        )
        processes.kill_descendants(os.getpid())
        bench.close()
        self._bench = None
        return pack_result(stopped, watch.facts())


class _Bench:
    """The process that runs the checks, as the supervisor sees it."""

    def __init__(self, lab: Lab, caller: Connection) -> None:
        self.connection, theirs = Pipe()
        self._output, their_output = os.pipe()
        self._stack = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        self._printed = b""
        self._listening = True
        self.pid = processes.fork()
        if self.pid == 0:
            self.connection.close()
            caller.close()
            os.close(self._output)
            be_bench(lab, theirs, their_output, self._stack)
        theirs.close()
        os.close(their_output)
        os.set_blocking(self._output, False)

    @property
    def printed(self) -> str:
        """The end of what was printed in the present check."""
        self.listen()
        return self._printed.decode(errors="replace")

    def ask(self, check: Check) -> None:
        """Have a check run."""
        self._printed = b""
        try:
            self.connection.send_bytes(check.number.encode())
        except ConnectionError:  # it has ended since the last check, which will be noticed
            return

    def wait_or(self, others: list[Connection]) -> None:
        """Wait for an answer, for one of the others, or a short while."""
        output: list[int] = [self._output] if self._listening else []
        wait([self.connection, *output, *others], timeout=TICK)
        self.listen()

    def listen(self) -> None:
        """Read what is printed, so that the bench never waits for a reader."""
        try:
            while self._listening:
                data = os.read(self._output, 1 << 16)
                self._listening = bool(data)
                self._printed = (self._printed + data)[-KEPT_OUTPUT:]
        except BlockingIOError:
            return

    def has_ended(self) -> str:
        """How it ended, in words; "" where it has not."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return _in_words(os.waitstatus_to_exitcode(status)) if pid else ""

    def end(self) -> str:
        """Say how it ended, which hung up."""
        deadline = time.monotonic() + HANGS_UP_WITHIN
        while time.monotonic() < deadline:
            ended = self.has_ended()
            if ended:
                return ended
            time.sleep(0.01)
        return "closed descriptors that it had not opened"

    def show_stack(self) -> None:
        """Have it write its stack down."""
        os.kill(self.pid, signal.SIGUSR1)
        deadline = time.monotonic() + SHOW_STACK_WITHIN
        while not self.stack() and time.monotonic() < deadline:
            time.sleep(0.01)

    def stack(self) -> str | None:
        """The stack that was written down in a crash or because it was asked for; not our part."""
        lines = os.pread(self._stack.fileno(), KEPT_STACK, 0).decode(errors="replace").splitlines()
        ours = (number for number, line in enumerate(lines) if _OURS in line)
        return "\n".join(lines[: next(ours, None)]) or None

    def close(self) -> None:
        """Give back what this process has of it."""
        self.connection.close()
        os.close(self._output)
        self._stack.close()


def _in_words(exit_code: int) -> str:
    if exit_code < 0:
        name = signal.Signals(-exit_code).name
        perhaps = " (for want of memory, perhaps)" if name == "SIGKILL" else ""
        return f"was killed by {name}{perhaps}"
    return f"ended with exit status {exit_code} (something called os._exit)"
