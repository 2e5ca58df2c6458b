"""What every backend of the repository sandbox can do: run commands in a tree, and fork it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from sandboxgym.core.errors import SandboxGymError

DEFAULT_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/home/agent",
    "USER": "agent",
    "LOGNAME": "agent",
    "SHELL": "/bin/bash",
    "TERM": "dumb",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "PYTHONHASHSEED": "0",
    "SOURCE_DATE_EPOCH": "946684800",
    "GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z",
}
"""What a new shell finds: nothing of the machine, and nothing that varies."""


MAX_FILE = 256 * 2**20
"""Bytes that a file may have that is read out of a sandbox, unless the caller says otherwise."""


class SandboxError(SandboxGymError, RuntimeError):
    """A sandbox could not be made, or was lost; nothing of it is left."""


class SandboxBrokenError(SandboxError):
    """A sandbox could not do what it was asked to, for what is in it or for want of something."""


class DiskFullError(SandboxBrokenError):
    """What sandboxes have written takes all that `Limits.disk` allows."""


@dataclass(frozen=True)
class Limits:
    """What the commands of a sandbox may use. What goes over a limit fails, and says so.

    Attributes:
        seconds: Of a command, by the clock; then every process of the sandbox is ended.
        memory: Bytes that each process may map.
        total_memory: Bytes that all processes of a sandbox may hold together.
        processes: Processes and threads of the sandbox.
        file_size: Bytes of a single file.
        disk: Bytes that may be written above the base, by all sandboxes of a backend together.
        open_files: Open files of each process.
        output: Characters of a command's output that are kept: half from its start, half from its
            end.
    """

    seconds: float = 60.0
    memory: int = 4 * 2**30
    total_memory: int = 4 * 2**30
    processes: int = 256
    file_size: int = 2**30
    disk: int = 4 * 2**30
    open_files: int = 1024
    output: int = 10_000


@dataclass(frozen=True)
class Base:
    """The tree that sandboxes start from. Nobody may change it while there are sandboxes.

    Attributes:
        root: A directory with a whole root file system, or a part of one that `binds` completes.
        binds: Directories of the machine that are shown inside, read-only: (there, inside).
        workdir: Where a new shell stands.
        environment: Variables of a new shell.
        name: What the tree is, the same on every machine: a hash of a commit or of all content.
    """

    root: Path
    binds: tuple[tuple[str, str], ...] = ()
    workdir: str = "/"
    environment: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULT_ENVIRONMENT))
    name: str = ""


@dataclass(frozen=True)
class CommandResult:
    """What became of a command.

    Attributes:
        output: What it printed, standard output and errors as they came; bytes that are no UTF-8
            are replaced. Over the limit, its middle is left out.
        returncode: Its exit status; 128 + the signal where one ended it.
        timed_out: Whether it was ended because its time was up.
        truncated: Whether something of the output was left out.
        elided_chars: How much of it.
        ended_sandbox: Whether it ended all processes of the sandbox, the first one included.
        limits_reached: Which of the limits it ran into, as `Limits` names them, sorted. A process
            that asks for more than `memory` or `open_files` is only told so by the kernel.
    """

    output: str
    returncode: int
    timed_out: bool = False
    truncated: bool = False
    elided_chars: int = 0
    ended_sandbox: bool = False
    limits_reached: tuple[str, ...] = ()


class Checkpoint:
    """A moment of a sandbox: files and the state of the shell. Kept while it is referred to.

    It belongs to the backend that made it, which alone knows what is in it.
    """


class Sandbox(Protocol):
    """A tree with a shell."""

    def run(
        self,
        command: str,
        timeout: float | None = None,
        *,
        stdin: bytes = b"",
        output: int | None = None,
    ) -> CommandResult:
        """Run a command in the shell.

        Args:
            command: Text for bash.
            timeout: Seconds; None takes those of the limits.
            stdin: What it finds on its standard input.
            output: Characters of its output that are kept; None takes those of the limits.
        """

    def snapshot(self, *, allow_process_loss: bool = False) -> Checkpoint:
        """Capture this moment.

        Raises:
            UncapturedStateError: Processes run in the background, and their loss is not allowed.
        """

    def restore(self, checkpoint: Checkpoint) -> None:
        """Return to a moment of this or of another sandbox of the same backend."""

    def read_file(self, path: str, limit: int = MAX_FILE) -> bytes:
        """The content of a file inside, as nothing inside could have changed on the way.

        Args:
            path: An absolute path; links in it are followed as inside.
            limit: Bytes that it may have.

        Raises:
            SandboxError: There is no such ordinary file, or it is larger.
        """

    def write_file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Put a new file in place of what has this name, in a folder that is there.

        Raises:
            SandboxError: It cannot be written.
        """

    def close(self) -> None:
        """End all processes and forget what was written; also what a crash of the owner does."""


class Backend(Protocol):
    """Makes sandboxes."""

    def create(self, base: Base) -> Sandbox:
        """A new sandbox over a base."""

    def fork(
        self,
        checkpoint: Checkpoint,
        *,
        views: Mapping[str, Checkpoint] = MappingProxyType({}),
        binds: Sequence[tuple[str, str]] = (),
        fresh_shell: bool = False,
    ) -> Sandbox:
        """A new sandbox that goes on from a moment of another one.

        Where it cannot be started, this raises `SandboxError`, or the first thing that is asked of
        it does.

        Args:
            checkpoint: The moment.
            views: Whole trees of other moments to be shown inside, by the name of a folder in the
                root. They can be written to, which nobody else sees. This is how a grader looks at
                what an agent left, from a sandbox in which the agent never was.
            binds: Further directories and files of the machine to be shown inside, read-only:
                (there, inside). They are no part of what is captured of the sandbox.
            fresh_shell: Start from a new shell instead of the state of the moment's.
        """

    def export(self, checkpoint: Checkpoint) -> bytes:
        """A moment as bytes that `import_` of another backend takes: what differs from the base."""

    def import_(self, base: Base, exported: bytes) -> Checkpoint:
        """A moment from bytes. They are data of unknown origin and are checked as such."""

    def close(self) -> None:
        """Close all sandboxes and forget all checkpoints."""
