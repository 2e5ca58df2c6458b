"""The owner's side: handles for the nursery and for the processes that it breeds."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
import weakref
from pathlib import Path
from typing import Any

from sandboxgym.core.errors import (
    NotForkableError,
    StateEncodingError,
    UncapturedStateError,
    WorkerLostError,
    WorkerTimeoutError,
)
from sandboxgym.mechanisms.process import program
from sandboxgym.mechanisms.process.failure import rebuild
from sandboxgym.mechanisms.process.wire import Connection

_NURSERY = "sandboxgym.mechanisms.process.nursery"
_ANSWER_OF_NURSERY = 20.0  # seconds; it only ever kills and waits


class Nursery:
    """The process that inherits and ends all that is bred in it.

    It ends, and everything in it, when nothing refers to it any more, or this process ends.

    Attributes:
        owner: The process that this one is.
        private_files: Whether each fork has a folder for temporary files of its own.
        first: Process id of the first worker.

    Args:
        factory: The pickled function that makes the environment.
        connection: The first worker's end of its connection.
    """

    def __init__(self, factory: bytes, connection: Connection) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._control, theirs = Connection.pair()
        # Nothing with threads could be forked.
        process = program.start(_NURSERY, theirs, os.environ | program.ONE_THREAD)
        theirs.close()
        folders: list[str] = []
        weakref.finalize(self, _end_nursery, self.owner, process, self._control, folders)
        try:
            self._control.send({"factory": factory}, descriptor=connection.fileno())
            started = self._control.receive().body
        except (EOFError, ConnectionError):
            raise WorkerLostError(
                f"the nursery of worker processes did not start (it "
                f"{program.ending(process.wait())}); what it printed says why"
            ) from None
        if started["folder"] is not None:
            folders.append(started["folder"])
        self.private_files: bool = started["private"]
        self.first: int = started["first"]

    def end(self, pid: int) -> str:
        """End a worker, where it has not ended yet, and say how it ended."""
        with self._lock:
            deadline = time.monotonic() + _ANSWER_OF_NURSERY
            try:
                self._control.send({"end": pid}, deadline=deadline)
                answer = self._control.receive(deadline=deadline).body
                while answer["ended"] != pid:  # an interrupt left the answer to an earlier question
                    answer = self._control.receive(deadline=deadline).body
            except (EOFError, OSError):
                return "the nursery, which knows how it ended, is gone too"
        status = answer["status"]
        if status is None:
            return "how is not known"
        return f"it {program.ending(os.waitstatus_to_exitcode(status))}"


class Process:
    """A process that holds an environment: a live worker, or a template.

    Waits until the process is ready. It ends when nothing refers to this handle any more.

    Args:
        connection: The owner's end of its connection.
        nursery: Where it was bred.
        timeout: Seconds that it may take for an answer, or None.
        pid: Its process id, where that is known; else it comes with its first message.

    Attributes:
        gone: Whether it ended.
        seen: Hash of all that its environment returned since the reset.
    """

    def __init__(
        self,
        connection: Connection,
        nursery: Nursery,
        timeout: float | None,
        pid: int | None = None,
    ) -> None:
        self.nursery = nursery
        self.timeout = timeout
        self.gone = False
        self.seen = ""
        self._connection = connection
        self._leave = weakref.finalize(self, _say_goodbye, nursery.owner, connection)
        self.pid = pid
        if pid is None:
            self.pid = self._receive(self._deadline())["pid"]
        self.greeting = self._receive(self._deadline())
        self.seen = self.greeting["seen"]

    def ask(self, what: str, *args: Any, descriptor: int | None = None) -> Any:
        """Have the process do something, and return the result.

        Raises:
            WorkerLostError: The process ended.
            WorkerTimeoutError: It did not answer in time, and was ended.
            Exception: What the environment raised.
        """
        if os.getpid() != self.nursery.owner:
            raise NotForkableError(
                "this process is a fork of the one that owns the environment, and two cannot use "
                "it at once: build the environment here, or send env.snapshot().to_bytes() and "
                "restore that here"
            )
        deadline = self._deadline()
        try:
            self._connection.send(
                {"ask": what, "args": list(args)}, descriptor=descriptor, deadline=deadline
            )
        except StateEncodingError:
            raise  # nothing was sent
        except BaseException as error:
            self._end(error)
            raise
        answer = self._receive(deadline)
        self.seen = answer["seen"]
        return answer["result"]

    def fork(self) -> Process:
        """Make a second process with the same content, which answers for itself.

        Raises:
            UncapturedStateError: It holds something that a fork would not copy.
        """
        try:
            ours, theirs = Connection.pair()
        except OSError as error:
            raise UncapturedStateError(
                f"no connection to another process can be opened ({error.strerror}): keep fewer "
                "snapshots, or templates (ProcessEnv(..., max_templates=...)), or raise `ulimit -n`"
            ) from error
        try:
            forked = self.ask("fork", descriptor=theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        if not forked:
            ours.close()
            raise UncapturedStateError(
                "the system gave the fork no second process (a limit on processes or memory)"
            )
        return Process(ours, self.nursery, self.timeout)

    def dismiss(self) -> None:
        """Let the process end by itself."""
        self.gone = True
        self._leave()

    def memory(self) -> int:
        """Bytes that it takes, pages that it shares with others divided among them."""
        try:
            lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            return 0
        return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)

    def _receive(self, deadline: float | None) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self._connection.receive(deadline=deadline).body
        except BaseException as error:
            self._end(error)
            raise
        if "error" in answer:
            raise rebuild(answer["error"])
        return answer

    def _end(self, error: BaseException) -> None:
        """End the process after a conversation that broke off, and say what happened.

        Also after an interrupt: the answer to come would be taken for that to the next question.
        """
        how = "before it was ready" if self.pid is None else self.nursery.end(self.pid)
        self.dismiss()
        if isinstance(error, TimeoutError):
            raise WorkerTimeoutError(
                f"the environment did not answer within {self.timeout} s and its process was ended:"
                " reset or restore to go on, or allow it more time: ProcessEnv(..., timeout=...)"
            ) from None
        if isinstance(error, EOFError | ConnectionError):
            raise WorkerLostError(
                f"the process that ran the environment ended ({how}): reset or restore to go on"
            ) from None

    def _deadline(self) -> float | None:
        return None if self.timeout is None else time.monotonic() + self.timeout


def _end_nursery(
    owner: int, process: subprocess.Popen[bytes], control: Connection, folders: list[str]
) -> None:
    if os.getpid() != owner:  # a fork of the owner drops its copy of the handle
        process.returncode = 0
        control.close()
        return
    control.hang_up()
    program.end(process, _ANSWER_OF_NURSERY)
    for folder in folders:
        if Path(folder).exists():  # the nursery was killed and could not remove it
            shutil.rmtree(folder)


def _say_goodbye(owner: int, connection: Connection) -> None:
    if os.getpid() == owner:
        connection.hang_up()
    else:
        connection.close()
