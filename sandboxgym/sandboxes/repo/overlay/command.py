"""Running one command inside the namespaces of a sandbox, from outside."""

from __future__ import annotations

import os
import resource
import select
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from sandboxgym.sandboxes.repo import shell
from sandboxgym.sandboxes.repo.overlay import syscalls
from sandboxgym.sandboxes.repo.overlay.seccomp import filter_program

INSIDE_USER = 1000


@dataclass(frozen=True)
class Limits:
    """What the commands of a sandbox may use.

    Attributes:
        memory: Bytes of address space of each process.
        processes: Processes and threads of the sandbox.
        file_size: Bytes of a file.
        open_files: Open files of each process.
    """

    memory: int = 4 * 2**30
    processes: int = 256
    file_size: int = 2**30
    open_files: int = 1024


@dataclass
class Output:
    """What became of a command."""

    printed: bytes
    elided: int
    returncode: int
    timed_out: bool
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


def run_command(
    inside: int,
    command: bytes,
    state: bytes,
    environment: dict[str, str],
    workdir: str,
    stdin: bytes,
    timeout: float,
    output_limit: int,
    limits: Limits,
) -> Output:
    """Run a command in the namespaces of the process `inside`.

    Args:
        inside: The first process of the sandbox.
        command: The text for the shell.
        state: What the shell of the command before left.
        environment: Environment variables of a new shell.
        workdir: Where a new shell stands.
        stdin: What it finds on its standard input.
        timeout: Seconds after which the command counts as hung; who calls then ends the sandbox.
        output_limit: Bytes of output that are kept, half from its start and half from its end.
        limits: What it may use.
    """
    printed, printer = os.pipe()
    left, leaver = os.pipe()
    contents = (stdin, command, shell.prologue(state))
    inputs = [in_memory(content) for content in contents]
    entering = os.fork()
    if entering == 0:
        _enter_and_run(inside, printer, [*inputs, leaver], environment, workdir, limits)
    for descriptor in (printer, leaver, *inputs):
        os.close(descriptor)
    output = Ends(output_limit // 2)
    written = bytearray()
    deadline = time.monotonic() + timeout
    try:
        ended = _follow(entering, printed, left, output, written, deadline)
    finally:
        os.close(printed)
        os.close(left)
    if not ended:
        os.kill(entering, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(entering, 0)[1])
    kept, elided = output.kept()
    return Output(
        printed=kept,
        elided=elided,
        returncode=status if status >= 0 else 128 - status,
        timed_out=not ended,
        holder_gone=not Path(f"/proc/{inside}/ns/pid").exists(),
        state=shell.state_left(bytes(written)),
    )


def in_memory(content: bytes) -> int:
    """A file that lies nowhere, with this content, to be read from its start."""
    descriptor = os.memfd_create("input")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _follow(
    entering: int, printed: int, left: int, output: Ends, written: bytearray, deadline: float
) -> bool:
    """Read what a command prints until its shell has ended; False where time is up before.

    Not until the end of the stream: what the shell left running in the background may keep it open.
    """
    watch = os.pidfd_open(entering)
    try:
        poll = select.poll()
        for descriptor in (printed, left, watch):
            poll.register(descriptor, select.POLLIN)
        while True:
            wait = deadline - time.monotonic()
            if wait <= 0:
                return False
            events = dict(poll.poll(wait * 1000))
            for descriptor, sink in ((printed, output.add), (left, written.extend)):
                if descriptor in events:
                    data = os.read(descriptor, 1 << 16)
                    sink(data) if len(written) <= shell.MAX_STATE_BYTES else None
                    if not data:
                        poll.unregister(descriptor)
            if list(events) == [watch]:  # it has ended and there is nothing more to read
                return True
    finally:
        os.close(watch)


def _enter_and_run(
    inside: int,
    printer: int,
    descriptors: list[int],
    environment: dict[str, str],
    workdir: str,
    limits: Limits,
) -> None:
    """In the child: enter the namespaces; the process that runs the shell is one more below."""
    try:
        os.setsid()
        syscalls.enter_namespaces(inside, syscalls.ALL_NAMESPACES)
        shell_process = os.fork()
        if shell_process == 0:
            _become_shell(printer, descriptors, environment, workdir, limits)
        for descriptor in (printer, *descriptors):
            os.close(descriptor)
        status = os.waitstatus_to_exitcode(os.waitpid(shell_process, 0)[1])
        os._exit(status if status >= 0 else 128 - status)
    except BaseException as error:  # noqa: BLE001 - it may not return into the warden
        os.write(printer, f"the command could not be started: {error}\n".encode())
        os._exit(126)


def _become_shell(
    printer: int,
    descriptors: list[int],
    environment: dict[str, str],
    workdir: str,
    limits: Limits,
) -> None:
    places = (0, shell.COMMAND_IN, shell.STATE_IN, shell.STATE_OUT)
    plan = dict(zip(places, descriptors, strict=True)) | {1: printer, 2: printer}
    for target, source in plan.items():
        os.dup2(source, target)
    os.closerange(3, shell.COMMAND_IN)
    os.closerange(shell.STATE_OUT + 1, 1024)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, which would be inherited
        signal.signal(ignored, signal.SIG_DFL)
    os.chdir(workdir)
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
    syscalls.set_seccomp_filter(filter_program())
    arguments = ["bash", "--norc", "--noprofile", "-c", shell.LAUNCH]
    os.execve("/bin/bash", arguments, environment)
