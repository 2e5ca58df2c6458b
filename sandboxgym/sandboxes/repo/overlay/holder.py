"""The processes that hold the namespaces of a sandbox: bubblewrap and what it starts.

The first process does nothing: it gives back a byte, which says that all is mounted, and waits for
ever. When it ends, the kernel ends every other process of the sandbox.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.repo.overlay import memory

WAITING = "/bin/cat"
"""What the first process after bubblewrap's own runs."""
WAITING_PID = "2"
"""As processes are counted inside; 1 is bubblewrap."""
_FLAGS, _PENDING = 6, 28
"""Of the fields in /proc/PID/stat after the name. A signal that ends a process becomes SIGKILL."""
_EXITING = 0x4  # PF_EXITING of the kernel
MAX_SECONDS_TO_START = MAX_SECONDS_TO_END = 60.0


class SandboxStartError(RuntimeError):
    """bubblewrap could not start the sandbox, or the kernel could not end it."""


class Holder:
    """A set of namespaces over a mounted tree.

    Args:
        bubblewrap: The program.
        root: The tree.
        shared_memory: A directory to be shown as /dev/shm.
        user: As whom to start it, or None to stay who we are.

    Raises:
        SandboxStartError: The machine does not let bubblewrap do it; the message has its words.
    """

    def __init__(self, bubblewrap: str, root: str, shared_memory: str, user: int | None) -> None:
        self._process = _start(bubblewrap, root, shared_memory, user)
        self.pid = next(iter(_children_of(self._process.pid)), 0)
        waiting = next(iter(_children_of(self.pid)), 0)
        if not (self.pid and waiting):
            self._end_outside()
            raise SandboxStartError("the sandbox ended as it was started")
        self.descriptor = os.pidfd_open(self.pid)
        self._waiting = os.pidfd_open(waiting)
        self._waiting_pid = waiting

    def lives(self) -> bool:
        """Whether nothing has ended the two processes that hold the sandbox.

        On a busy machine, one that a command has killed can go on to exist for a while. It is asked
        for first whether it is doomed: what it becomes afterwards is seen by its descriptor.
        """
        if is_doomed(self._waiting_pid):
            return False
        return not select.select([self.descriptor, self._waiting], [], [], 0)[0]

    def end(self) -> None:
        """End every process of the sandbox and wait until the last one is gone.

        The kernel reports the end of the first process only when no other is left, so afterwards
        nobody writes to the tree any more.
        """
        with contextlib.suppress(ProcessLookupError):  # something inside was faster
            signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)
        if not select.select([self.descriptor], [], [], MAX_SECONDS_TO_END)[0]:
            raise SandboxStartError("processes of the sandbox did not end although killed")
        self._end_outside()
        os.close(self.descriptor)
        os.close(self._waiting)

    def _end_outside(self) -> None:
        """End the part of bubblewrap that is outside of the namespaces."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()

    def command_lines(self) -> list[str]:
        """Of what still runs in the sandbox beside the two processes that hold it."""
        lines: list[str] = []
        for pid in _descendants(self.pid):
            try:
                status = Path(f"/proc/{pid}/status").read_text()
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            except (FileNotFoundError, ProcessLookupError):
                continue
            inside = status.partition("NSpid:")[2].split("\n")[0].split()[-1]
            if inside != WAITING_PID and "\nState:\tZ" not in status:
                name = status.partition("\n")[0].partition(":\t")[2]
                lines.append(line.decode("utf-8", "replace").strip() or f"[{name}]")
        return lines

    def count(self) -> int:
        """How many processes there are beside the two that hold the sandbox."""
        return max(0, len(_descendants(self.pid)) - 1)

    def holds_more(self, limit: int, entering: int) -> bool:
        """Whether the processes hold more bytes of memory together.

        Args:
            limit: How many.
            entering: The process outside whose child runs a command.
        """
        return memory.held(_descendants(self.pid, entering), limit) > limit


def _start(
    bubblewrap: str, root: str, shared_memory: str, user: int | None
) -> subprocess.Popen[bytes]:
    someone: dict[str, Any] = {}
    if user is not None:
        someone = {"user": user, "group": user, "extra_groups": []}
    process = subprocess.Popen(
        [
            bubblewrap,
            *("--unshare-all", "--die-with-parent", "--new-session"),
            *("--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
            *("--cap-drop", "ALL", "--bind", root, "/"),
            *("--dev", "/dev", "--bind", shared_memory, "/dev/shm", "--remount-ro", "/dev"),
            *("--proc", "/proc", "--chdir", "/", "--", WAITING),
        ],
        **someone,
        env={"PATH": "/usr/bin:/bin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # its words below say why it has ended
        process.stdin.write(b"\n")
    if not select.select([process.stdout], [], [], MAX_SECONDS_TO_START)[0]:
        process.kill()
    if process.stdout.read(1) != b"\n":
        words = process.communicate()[1].decode(errors="replace").strip()
        raise SandboxStartError(f"bubblewrap did not start the sandbox: {words}")
    return process


def is_doomed(pid: int) -> bool:
    """Whether a process ends without doing anything more: it was killed, or is on its way out."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return True
    flags, pending = int(fields[_FLAGS]), int(fields[_PENDING])
    return bool(flags & _EXITING or pending & 1 << signal.SIGKILL - 1)


def _descendants(*pids: int) -> list[int]:
    """All that processes have started, directly or not."""
    found: list[int] = []
    todo = [child for pid in pids for child in _children_of(pid)]
    while todo:
        pid = todo.pop(0)
        found.append(pid)
        todo += _children_of(pid)
    return found


def _children_of(pid: int) -> list[int]:
    """Children of a process, of all its threads; none where it is gone."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        lists = [(thread / "children").read_text() for thread in threads]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for children in lists for child in children.split()]
