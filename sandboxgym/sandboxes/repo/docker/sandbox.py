"""`DockerSandbox`: a container that waits, and in which each command is an exec."""

from __future__ import annotations

import contextlib
import posixpath
import re
import tarfile
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sandboxgym.sandboxes.repo.backend import MAX_FILE, Checkpoint, CommandResult, SandboxError
from sandboxgym.sandboxes.repo.docker import travel
from sandboxgym.sandboxes.repo.docker.command import Call, Output, run_command
from sandboxgym.sandboxes.repo.docker.daemon import told
from sandboxgym.sandboxes.repo.docker.moments import DockerMoment, Image
from sandboxgym.sandboxes.repo.results import BYTES_OF_A_CHARACTER, refuse_background, result_of

if TYPE_CHECKING:
    from sandboxgym.sandboxes.repo.docker.backend import DockerBackend

_KILLED, _OVER_FILE_SIZE = 128 + 9, 128 + 25
_MAX_LINKS = 40
_KILL_COUNTS = (  # of the second version of control groups, and of the first
    "/sys/fs/cgroup/memory.events",
    "/sys/fs/cgroup/memory/memory.oom_control",
)
_NOT_A_FILE = 0x8F28_0000  # in modes as Go has them: folders, links, devices, pipes, sockets


class DockerSandbox:
    """One sandbox: a container that waits, and in which each command is an exec."""

    def __init__(
        self, backend: DockerBackend, moment: DockerMoment, binds: tuple[tuple[str, str], ...]
    ) -> None:
        self.backend = backend
        self._binds = binds
        self._moment = moment
        self._started_from: Image | None = moment.image  # which is kept while it is used
        self._closed = False
        with told("start"):
            self._container = self._run(moment.image)

    def run(
        self,
        command: str,
        timeout: float | None = None,
        *,
        stdin: bytes = b"",
        output: int | None = None,
    ) -> CommandResult:
        """Run a command in the shell; None gives it the time and the output of the limits."""
        self._check_open()
        limits, base = self.backend.limits, self._moment.base
        kept = limits.output if output is None else output
        call = Call(
            command=command.encode("utf-8", "surrogateescape"),
            stdin=stdin,
            state=self._moment.shell,
            environment=base.environment,
            workdir=base.workdir,
            seconds=limits.seconds if timeout is None else timeout,
            output=BYTES_OF_A_CHARACTER * kept,
            memory=limits.memory,
        )
        with told("run a command"):
            done = run_command(self.backend.client.api, self._container.id, call)
            reached, ended = self._after(done)
        if done.state is not None and done.returncode is not None:
            self._moment = replace(self._moment, shell=done.state)
        return result_of(
            done.printed,
            done.elided,
            kept,
            returncode=_KILLED if done.returncode is None else done.returncode,
            ended_sandbox=ended,
            reached=reached,
        )

    def snapshot(self, *, allow_process_loss: bool = False) -> DockerMoment:
        """Capture this moment; processes in the background are ended if their loss is allowed."""
        self._check_open()
        self.backend.sweep()
        with told("look at processes"):
            running = self._processes()
        if not allow_process_loss:
            refuse_background(running)
        with told("commit"):
            if running:
                self._container.restart(timeout=0)
            image = self.backend.commit(self._container, self._started_from)
        self._moment = replace(self._moment, image=image)
        return self._moment

    def restore(self, checkpoint: Checkpoint) -> None:
        """Return to a moment of this or of another sandbox of the same backend."""
        self._check_open()
        moment = self.backend.own(checkpoint)
        if moment.base != self._moment.base:
            raise SandboxError("this checkpoint is one above another base: fork it instead")
        with told("restore"):
            new = self._run(moment.image)
            self._container.remove(force=True, v=True)
        self._container, self._moment, self._started_from = new, moment, moment.image
        self.backend.sweep()

    def read_file(self, path: str, limit: int = MAX_FILE) -> bytes:
        """The content of an ordinary file of at most this many bytes."""
        self._check_open()
        for _ in range(_MAX_LINKS):
            with told(f"read {path}"):
                pieces, status = self._container.get_archive(path)
            target = status["linkTarget"]
            if not target:
                break
            path = posixpath.join(posixpath.dirname(path), target)
        with contextlib.closing(pieces):
            if status["mode"] & _NOT_A_FILE:
                raise SandboxError(f"{path} is no ordinary file, so it is not read")
            if status["size"] > limit:
                raise SandboxError(
                    f"{path} has {status['size']} bytes, more than the {limit} that may be read"
                )
            return travel.only_file(b"".join(pieces))

    def write_file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Put a new file in place of what has this name, in a folder that is there."""
        self._check_open()
        above, _, name = path.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            raise SandboxError(f"{path!r} names no file")
        entry = tarfile.TarInfo(name)
        entry.mode, entry.uid, entry.gid, entry.mtime = mode, 1000, 1000, int(time.time())
        with told(f"write {path}"):
            self._container.put_archive(above or "/", travel.archive_of([(entry, content)]))

    def close(self) -> None:
        """Remove the container."""
        if self._closed:
            return
        self._closed = True
        self._started_from = None
        if self.backend.is_open:
            with told("close"):
                self._container.remove(force=True, v=True)

    def __enter__(self) -> DockerSandbox:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def put_archive(self, path: str, archive: Any) -> None:
        """Unpack an archive in a folder, as the daemon does."""
        self._container.put_archive(path, archive)

    def _run(self, image: Image) -> Any:
        container = self.backend.containers.create(image.name, self._binds)
        try:
            container.start()
        except BaseException:
            container.remove(force=True, v=True)
            raise
        return container

    def _after(self, done: Output) -> tuple[set[str], bool]:
        """Which limits a command reached, and whether the container ended with it.

        It runs again after that, with no process of the agent where processes are the cause.
        """
        if done.returncode is None:
            self._container.restart(timeout=0)
            return {"seconds"}, False
        reached = {"file_size"} if done.returncode == _OVER_FILE_SIZE else set()
        if done.state is not None and done.returncode < _KILLED:
            return reached, False
        self._container.reload()
        if self._container.status != "running":
            self._container.restart(timeout=0)
            return reached, True
        # Of as many processes as there may be, one is refused that has to start a shell.
        crowded = len(self._processes()) > self.backend.limits.processes // 2
        full = not crowded and self._memory_was_full()
        if crowded or full:
            reached.add("processes" if crowded else "total_memory")
            self._container.restart(timeout=0)
        return reached, False

    def _memory_was_full(self) -> bool:
        """Whether the kernel has ended a process for memory since the container was started.

        The daemon tells that only of a container's first process.
        """
        said = self._container.exec_run(["cat", *_KILL_COUNTS], user="0:0").output
        return re.search(rb"^oom_kill [1-9]", said, re.MULTILINE) is not None

    def _processes(self) -> list[str]:
        """Command lines of what the agent left running: all that is not root's."""
        shown = self._container.top(ps_args="-eo pid,uid,stat,args")["Processes"]
        found = []
        for columns in shown or ():  # Podman gives each line as one
            _, user, status, line = " ".join(columns).split(None, 3)
            if user != "0" and not status.startswith("Z"):
                found.append(line)
        return sorted(found)

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxError("this sandbox is closed")
        self.backend.check_open()
