"""`DockerBackend`: each sandbox a container, each moment an image that was committed from it."""

from __future__ import annotations

import contextlib
import itertools
import os
import posixpath
import re
import tarfile
import time
import uuid
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.sandboxes.repo.backend import (
    MAX_FILE,
    Base,
    Checkpoint,
    CommandResult,
    Limits,
    SandboxError,
)
from sandboxgym.sandboxes.repo.docker import owners, travel
from sandboxgym.sandboxes.repo.docker.command import Call, Output, run_command
from sandboxgym.sandboxes.repo.docker.images import ImageBase, exported, image_base
from sandboxgym.sandboxes.repo.results import BYTES_OF_A_CHARACTER, refuse_background, result_of
from sandboxgym.sandboxes.repo.sealing import sealed, unsealed

MAX_LAYERS = 110
"""Of an image; Docker cannot run one with 125, so that longer chains are made one layer."""

_MAIN = ["sleep", "infinity"]  # what a container runs, so that there is one
_KILLED, _OVER_FILE_SIZE = 128 + 9, 128 + 25
_MAX_LINKS = 40
_KILL_COUNTS = (  # of the second version of control groups, and of the first
    "/sys/fs/cgroup/memory.events",
    "/sys/fs/cgroup/memory/memory.oom_control",
)
_SENT_AT_A_TIME = 1 << 20
_NOT_A_FILE = 0x8F28_0000  # in modes as Go has them: folders, links, devices, pipes, sockets
_PREPARE = 'mkdir -p /home/agent; chown -R 1000:1000 /home/agent; [ "$0" = / ] || {\
 mkdir -p "$0"; chown -R 1000:1000 "$0"; }'


class DockerBackend:
    """Sandboxes as containers of a Docker daemon, or of Podman through its Docker socket.

    All that it makes is removed by `close`, when the process ends, or, where it was killed, by the
    next `DockerBackend` on the same machine.

    Args:
        limits: What commands may use. `disk` is not enforced: the daemon's storage is.
        base_url: The daemon's address; None takes that of the environment (DOCKER_HOST).
    """

    def __init__(self, limits: Limits | None = None, base_url: str | None = None) -> None:
        self.limits = limits or Limits()
        self.client = connect(base_url)
        self.name = uuid.uuid4().hex
        owners.remove_leftovers(self.client)
        self._bases: dict[tuple[str, str], Image] = {}
        self._indexes: dict[str, travel.Index] = {}
        self._dropped: deque[str] = deque()
        label = f"{owners.BACKEND}={self.name}"
        self._finalizer = weakref.finalize(self, _remove_and_disconnect, self.client, label)

    def base(self, image: str) -> ImageBase:
        """An image of the daemon, by name, as what sandboxes start from."""
        return image_base(self.client, image)

    def create(self, base: Base) -> DockerSandbox:
        """A new sandbox over an image."""
        return self._open(self._start(base))

    def fork(
        self,
        checkpoint: Checkpoint,
        *,
        views: Mapping[str, Checkpoint] = MappingProxyType({}),
        binds: Sequence[tuple[str, str]] = (),
        fresh_shell: bool = False,
    ) -> DockerSandbox:
        """A new sandbox that goes on from a moment of another one.

        Args:
            checkpoint: The moment.
            views: Whole trees of other moments to be shown inside, by the name of a folder in the
                root. They are copied, which takes its time.
            binds: Directories and files of the daemon's machine to be shown inside, read-only.
            fresh_shell: Start from a new shell instead of the state of the moment's.
        """
        moment = self._own(checkpoint)
        shown = {name: self._own(view) for name, view in views.items()}
        sandbox = self._open(replace(moment, shell=b"") if fresh_shell else moment, binds)
        try:
            with told("show another tree"):
                for name, view in shown.items():
                    self._show(sandbox, name, view)
        except BaseException:
            sandbox.close()
            raise
        return sandbox

    def export(self, checkpoint: Checkpoint) -> bytes:
        """A moment as bytes that `import_` takes, here or in the overlay backend."""
        moment = self._own(checkpoint)
        index = self._index(moment.base)
        with told("export"), exported(self.client, moment.image.name) as file:
            archive = travel.difference(file, index)
        return sealed(moment.base.name, moment.shell, archive)

    def import_(self, base: Base, exported: bytes) -> DockerMoment:
        """A moment from bytes. They are data of unknown origin and are checked as such.

        Raises:
            SpecMismatchError: They say how another base was changed.
            SnapshotCorruptError: They are not what `export` makes.
        """
        shell, layer = unsealed(exported, base, self.limits.disk)
        start = self._start(base)
        changes = travel.Changes.read(layer, self._index(base), self.limits.disk)
        with told("import"):
            helper = self._container(start.image.name, cap_add=["DAC_OVERRIDE"])
            try:
                if changes.deleted:
                    helper.start()
                    self._delete(helper, changes.deleted)
                helper.put_archive("/", changes.archive)
                image = self._commit(helper, start.image)
            finally:
                helper.remove(force=True, v=True)
        return replace(start, image=image, shell=shell)

    def close(self) -> None:
        """Remove all containers and images that this backend made."""
        self._finalizer()

    def __deepcopy__(self, memo: object) -> DockerBackend:
        """Itself: Gymnasium copies the arguments of environments, and means the same backend."""
        return self

    def __enter__(self) -> DockerBackend:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self, base: Base) -> DockerMoment:
        """The first moment over an image, in which the agent owns its folders."""
        if not isinstance(base, ImageBase):
            raise SandboxError(
                "the docker backend starts from images: make the base with DockerBackend.base(name)"
            )
        self._check_open()
        self._sweep()
        key = (base.image, base.workdir)
        if key not in self._bases:
            with told("prepare the image"):
                self._bases[key] = self._prepare(base)
        return DockerMoment(weakref.ref(self), base, self._bases[key], b"")

    def _prepare(self, base: ImageBase) -> Image:
        container = self._container(
            base.image,
            cap_add=["CHOWN", "DAC_OVERRIDE", "FOWNER"],
            entrypoint=["/bin/sh", "-ec", _PREPARE, base.workdir],
        )
        try:
            container.start()
            status = container.wait()["StatusCode"]
            if status != 0:
                said = container.logs().decode("utf-8", "replace")[-500:]
                raise SandboxError(f"the folders of the agent could not be made: {said}")
            return self._commit(container, None)
        finally:
            container.remove(force=True, v=True)

    def _open(self, moment: DockerMoment, binds: Sequence[tuple[str, str]] = ()) -> DockerSandbox:
        self._check_open()
        self._sweep()
        return DockerSandbox(self, moment, tuple(binds))

    def _container(self, image: str, binds: Sequence[tuple[str, str]] = (), **other: Any) -> Any:
        """A new container that is not started; nothing of the machine is in it but the binds."""
        from docker.types import Ulimit

        limits = self.limits
        settings = {
            "entrypoint": _MAIN,
            "command": [],
            "user": "0:0",  # whom the agent cannot signal; without any capability
            "init": True,
            "hostname": "sandbox",
            "working_dir": "/",
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "pids_limit": limits.processes,
            "mem_limit": limits.total_memory,
            "memswap_limit": limits.total_memory,
            "ulimits": [
                Ulimit(name="nofile", soft=limits.open_files, hard=limits.open_files),
                Ulimit(name="fsize", soft=limits.file_size, hard=limits.file_size),
                Ulimit(name="core", soft=0, hard=0),
            ],
            "volumes": [f"{there}:{inside}:ro" for there, inside in binds],
            "labels": self._labels(),
            "healthcheck": {"test": ["NONE"]},
        }
        return self.client.containers.create(image, **{**settings, **other})

    def _labels(self) -> dict[str, str]:
        return {owners.OWNER: owners.this_process(), owners.BACKEND: self.name}

    def _commit(self, container: Any, parent: Image | None) -> Image:
        """A container as an image, with the labels that it has itself."""
        made = container.commit(pause=True)
        if len(made.attrs["RootFS"]["Layers"]) < MAX_LAYERS:
            return Image(made.id, parent, self._dropped)
        lines = [f'LABEL "{name}"="{value}"' for name, value in self._labels().items()]
        with exported(self.client, made.id) as file:
            pieces = iter(lambda: file.read(_SENT_AT_A_TIME), b"")  # a file is not sent in chunks
            flat = self.client.api.import_image_from_stream(pieces, changes=lines)
        owners.remove_image(self.client, made.id)
        return Image(travel.id_in(flat), None, self._dropped)

    def _show(self, sandbox: DockerSandbox, name: str, view: DockerMoment) -> None:
        folder = tarfile.TarInfo(name)
        folder.type, folder.mode, folder.uid, folder.gid = tarfile.DIRTYPE, 0o755, 1000, 1000
        sandbox._container.put_archive("/", travel.archive_of([(folder, b"")]))
        with exported(self.client, view.image.name) as file:
            sandbox._container.put_archive(f"/{name}", file)

    def _delete(self, container: Any, names: list[str]) -> None:
        for some in _batches(names):
            done = container.exec_run(["rm", "-rf", "--", *(f"/{name}" for name in some)])
            if done.exit_code != 0:
                raise SandboxError(f"what the moment deletes stays: {done.output[-500:]!r}")

    def _index(self, base: Base) -> travel.Index:
        """What the files of a base are, read once."""
        image = self._start(base).image.name
        if image not in self._indexes:
            with told("read the base"), exported(self.client, image) as file:
                self._indexes[image] = travel.index(file)
        return self._indexes[image]

    def _own(self, checkpoint: Checkpoint) -> DockerMoment:
        """A checkpoint, seen to be one of this backend."""
        if not isinstance(checkpoint, DockerMoment) or checkpoint.backend() is not self:
            raise SandboxError(
                "this checkpoint is of another backend: export it there and import it here"
            )
        return checkpoint

    def _sweep(self) -> None:
        """Remove images that no checkpoint refers to any more.

        Done when something else is, as Python may drop an object in the midst of anything.
        """
        for _ in range(len(self._dropped)):
            name = self._dropped.popleft()
            if not owners.remove_image(self.client, name):
                self._dropped.append(name)

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise SandboxError("this DockerBackend is closed: make another one")


class Image:
    """A committed image; removed when nothing refers to it, and after those made from it."""

    def __init__(self, name: str, parent: Image | None, dropped: deque[str]) -> None:
        self.name = name
        self.parent = parent
        weakref.finalize(self, dropped.append, name).atexit = False  # the backend's removes all


@dataclass(frozen=True)
class DockerMoment(Checkpoint):
    """The checkpoint of this backend: an image above a base's, and a shell's state."""

    backend: weakref.ref[DockerBackend] = field(repr=False)
    base: ImageBase
    image: Image
    shell: bytes

    def pack(self) -> bytes:
        """This moment as bytes, which `import_` of another backend takes.

        Raises:
            SandboxError: Its backend is closed.
        """
        backend = self.backend()
        if backend is None:
            raise SandboxError("the backend of this moment is gone, and its images with it")
        return backend.export(self)


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
        self.backend._sweep()
        with told("look at processes"):
            running = self._processes()
        if not allow_process_loss:
            refuse_background(running)
        with told("commit"):
            if running:
                self._container.restart(timeout=0)
            image = self.backend._commit(self._container, self._started_from)
        self._moment = replace(self._moment, image=image)
        return self._moment

    def restore(self, checkpoint: Checkpoint) -> None:
        """Return to a moment of this or of another sandbox of the same backend."""
        self._check_open()
        moment = self.backend._own(checkpoint)
        if moment.base != self._moment.base:
            raise SandboxError("this checkpoint is one above another base: fork it instead")
        with told("restore"):
            new = self._run(moment.image)
            self._container.remove(force=True, v=True)
        self._container, self._moment, self._started_from = new, moment, moment.image
        self.backend._sweep()

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
        if self.backend._finalizer.alive:
            with told("close"):
                self._container.remove(force=True, v=True)

    def __enter__(self) -> DockerSandbox:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self, image: Image) -> Any:
        container = self.backend._container(image.name, self._binds)
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
        return sorted(
            line
            for _, user, status, line in shown or ()
            if user != "0" and not status.startswith("Z")
        )

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxError("this sandbox is closed")
        self.backend._check_open()


def connect(base_url: str | None = None) -> Any:
    """A client of the daemon at an address, or of the one that the environment names.

    Raises:
        MissingDependencyError: The package `docker` is not installed.
        SandboxError: No daemon answers.
    """
    try:
        import docker
        from docker.errors import DockerException
    except ImportError as error:
        raise MissingDependencyError(
            'the docker backend needs the package docker: pip install "sandboxgym[docker]"'
        ) from error
    try:
        client = docker.DockerClient(base_url) if base_url else docker.from_env()
        client.ping()
    except (DockerException, OSError) as error:
        raise SandboxError(
            f"no Docker daemon answers at {base_url or os.environ.get('DOCKER_HOST', 'its socket')}"
            f" ({error}): start one, or name its socket by base_url or DOCKER_HOST"
        ) from error
    return client


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """Errors of the daemon as ours."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except (DockerException, RequestException, OSError) as error:
        raise SandboxError(f"the daemon could not {what}: {error}") from error


def _remove_and_disconnect(client: Any, label: str) -> None:
    owners.remove_labelled(client, label)
    client.close()


def _batches(names: list[str], size: int = 500) -> Iterator[list[str]]:
    remaining = iter(names)
    while some := list(itertools.islice(remaining, size)):
        yield some
