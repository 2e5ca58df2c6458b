"""What every backend of the repository sandbox can do: run commands in a tree, and fork it."""

from __future__ import annotations

from collections.abc import Mapping
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


class SandboxError(SandboxGymError, RuntimeError):
    """A sandbox could not be made, or was lost; nothing of it is left."""


@dataclass(frozen=True)
class Limits:
    """What the commands of a sandbox may use. What goes over a limit fails, and says so.

    Attributes:
        seconds: Of a command, by the clock; then every process of the sandbox is ended.
        memory: Bytes that each process may map.
        processes: Processes and threads of the sandbox.
        file_size: Bytes of a single file.
        disk: Bytes that may be written above the base, by all sandboxes of a backend together.
        open_files: Open files of each process.
        output: Characters of a command's output that are kept: half from its start, half from its
            end.
    """

    seconds: float = 60.0
    memory: int = 4 * 2**30
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
    """

    root: Path
    binds: tuple[tuple[str, str], ...] = ()
    workdir: str = "/"
    environment: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULT_ENVIRONMENT))


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
    """

    output: str
    returncode: int
    timed_out: bool = False
    truncated: bool = False
    elided_chars: int = 0
    ended_sandbox: bool = False


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
    ) -> Sandbox:
        """A new sandbox that goes on from a moment of another one.

        Args:
            checkpoint: The moment.
            views: Whole trees of other moments to be shown inside, by the name of a folder in the
                root. They can be written to, which nobody else sees. This is how a grader looks at
                what an agent left, from a sandbox in which the agent never was.
        """

    def export(self, checkpoint: Checkpoint) -> bytes:
        """A moment as bytes that `import_` of another backend takes: what differs from the base."""

    def import_(self, base: Base, exported: bytes) -> Checkpoint:
        """A moment from bytes. They are data of unknown origin and are checked as such."""

    def close(self) -> None:
        """Close all sandboxes and forget all checkpoints."""
