"""Running one command inside the namespaces of a sandbox, from outside."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sandboxgym.sandboxes.repo import shell
from sandboxgym.sandboxes.repo.overlay import syscalls
from sandboxgym.sandboxes.repo.overlay.holder import Holder
from sandboxgym.sandboxes.repo.overlay.seccomp import filter_program

INSIDE_USER = 1000
_PIPE = 1 << 16  # bytes that a pipe holds
_SECONDS_BETWEEN_LOOKS = 0.1


@dataclass(frozen=True)
class Limits:
    """What the commands of a sandbox may use.

    Attributes:
        memory: Bytes of address space of each process.
        total_memory: Bytes that all processes may hold together.
        processes: Processes and threads of the sandbox.
        file_size: Bytes of a file.
        open_files: Open files of each process.
    """

    memory: int
    total_memory: int
    processes: int
    file_size: int
    open_files: int


@dataclass(frozen=True)
class Call:
    """A command, and what its shell starts from.

    Attributes:
        command: The text for the shell.
        stdin: What it finds on its standard input.
        state: What the shell of the command before left.
        environment: Environment variables of a new shell.
        workdir: Where a new shell stands.
        seconds: After which it counts as hung.
        output: Bytes of output that are kept, half from its start and half from its end.
    """

    command: bytes
    stdin: bytes
    state: bytes
    environment: dict[str, str]
    workdir: str
    seconds: float
    output: int


@dataclass
class Output:
    """What became of a command.

    Attributes:
        printed: Its output, without its middle where that was too long.
        elided: How many bytes were left out.
        returncode: As a shell gives it.
        reached: Names of limits that it ran into; who called then has to end the sandbox where
            time or memory is among them.
        holder_gone: Whether it ended the first process of the sandbox.
        state: What its shell left, if it got that far.
    """

    printed: bytes
    elided: int
    returncode: int
    reached: set[str]
    holder_gone: bool
    state: bytes | None


@dataclass
class Ends:
    """The first and the last bytes of a stream."""

    limit: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    seen: int = 0

    def add(self, data: bytes) -> None:
        """Take in more of the stream."""
        self.seen += len(data)
        room = self.limit - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > 2 * self.limit:
            del self.tail[: -self.limit]

    def kept(self) -> tuple[bytes, int]:
        """Head and tail, and how many bytes between them were left out."""
        tail = self.tail[-self.limit :]
        return bytes(self.head + tail), self.seen - len(self.head) - len(tail)


def run_command(holder: Holder, call: Call, limits: Limits) -> Output:
    """Run a command in the namespaces of a sandbox."""
    printed, printer = os.pipe()
    left, leaver = os.pipe()
    contents = (call.stdin, call.command, shell.prologue(call.state))
    inputs = [in_memory(content) for content in contents]
    entering = os.fork()
    if entering == 0:
        _enter_and_run(holder, printer, [*inputs, leaver], call, limits)
    for descriptor in (printer, leaver, *inputs):
        os.close(descriptor)
    output = Ends(call.output // 2)
    written = State()
    reading = Reading(entering, holder, {printed: output.add, left: written.add})
    try:
        stopped_by = reading.follow(time.monotonic() + call.seconds, limits.total_memory)
    finally:
        os.close(printed)
        os.close(left)
    if stopped_by is not None:
        os.kill(entering, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(entering, 0)[1])
    returncode = status if status >= 0 else 128 - status
    reached = set() if stopped_by is None else {stopped_by}
    if returncode == 128 + signal.SIGXFSZ:
        reached.add("file_size")
    kept, elided = output.kept()
    return Output(
        printed=kept,
        elided=elided,
        returncode=returncode,
        reached=reached,
        holder_gone=not holder.lives(),
        state=shell.state_left(bytes(written.data)),
    )


def in_memory(content: bytes) -> int:
    """A file that lies nowhere, with this content, to be read from its start."""
    descriptor = os.memfd_create("input")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


@dataclass
class Reading:
    """Reads what a command prints and leaves, until its shell has ended.

    Not until the end of the streams: what the shell left running may keep them open, and go on
    printing.
    """

    entering: int
    holder: Holder
    sinks: dict[int, Callable[[bytes], None]]

    def follow(self, deadline: float, memory: int) -> str | None:
        """Returns None when the shell has ended, or the name of the limit that was reached."""
        watch = os.pidfd_open(self.entering)
        poll = select.poll()
        for descriptor in (*self.sinks, watch):
            poll.register(descriptor, select.POLLIN)
        look_at_memory = time.monotonic() + _SECONDS_BETWEEN_LOOKS
        try:
            while True:
                now = time.monotonic()
                if now >= deadline:
                    return "seconds"
                if now >= look_at_memory:
                    if self.holder.holds_more(memory, self.entering):
                        return "total_memory"
                    look_at_memory = time.monotonic() + _SECONDS_BETWEEN_LOOKS
                events = dict(poll.poll(1000 * (min(deadline, look_at_memory) - now)))
                if watch in events:
                    self.read_rest()
                    return None
                for descriptor in events:
                    data = os.read(descriptor, _PIPE)
                    self.sinks[descriptor](data)
                    if not data:
                        poll.unregister(descriptor)
        finally:
            os.close(watch)

    def read_rest(self) -> None:
        """Read what lies in the pipes when the shell has ended."""
        for descriptor, sink in self.sinks.items():
            os.set_blocking(descriptor, False)
            with contextlib.suppress(BlockingIOError):
                sink(os.read(descriptor, _PIPE))


@dataclass
class State:
    """What a shell leaves; no more is kept than can be one."""

    data: bytearray = field(default_factory=bytearray)

    def add(self, data: bytes) -> None:
        """Take in more."""
        if len(self.data) <= shell.MAX_STATE_BYTES:
            self.data += data


def _enter_and_run(
    holder: Holder, printer: int, descriptors: list[int], call: Call, limits: Limits
) -> None:
    """In the child: enter the namespaces; the process that runs the shell is one more below."""
    try:
        os.setsid()
        Path("/proc/self/oom_score_adj").write_text("1000")  # what the kernel ends first
        syscalls.enter_namespaces(holder.descriptor, syscalls.ALL_NAMESPACES)
        shell_process = os.fork()
        if shell_process == 0:
            _become_shell(printer, descriptors, call, limits)
        for descriptor in (printer, *descriptors):
            os.close(descriptor)
        status = os.waitstatus_to_exitcode(os.waitpid(shell_process, 0)[1])
        os._exit(status if status >= 0 else 128 - status)
    except BaseException as error:  # noqa: BLE001 - it may not return into the warden
        os.write(printer, f"the command could not be started: {error}\n".encode())
        os._exit(126)


def _become_shell(printer: int, descriptors: list[int], call: Call, limits: Limits) -> None:
    places = (0, shell.COMMAND_IN, shell.STATE_IN, shell.STATE_OUT)
    plan = dict(zip(places, descriptors, strict=True)) | {1: printer, 2: printer}
    for target, source in plan.items():
        os.dup2(source, target)
    os.closerange(3, shell.COMMAND_IN)
    os.closerange(shell.STATE_OUT + 1, 1024)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, which would be inherited
        signal.signal(ignored, signal.SIG_DFL)
    os.umask(0o022)
    for kind, value in (
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_FSIZE, limits.file_size),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))
    syscalls.drop_privileges_for_good()
    os.setresgid(INSIDE_USER, INSIDE_USER, INSIDE_USER)
    os.setresuid(INSIDE_USER, INSIDE_USER, INSIDE_USER)
    with contextlib.suppress(OSError):  # it is gone; a shell that goes on has its own, and says so
        os.chdir(call.workdir)
    syscalls.set_seccomp_filter(filter_program())
    arguments = ["bash", "--norc", "--noprofile", "-c", shell.LAUNCH]
    os.execve("/bin/bash", arguments, call.environment)
