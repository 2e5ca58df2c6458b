"""`DockerBackend`: each sandbox a container, each moment an image that was committed from it."""

from __future__ import annotations

import itertools
import tarfile
import uuid
import weakref
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sandboxgym.sandboxes.repo.backend import Base, Checkpoint, Limits, SandboxError
from sandboxgym.sandboxes.repo.docker import owners, travel
from sandboxgym.sandboxes.repo.docker.containers import Containers, DiskNotKeptWarning
from sandboxgym.sandboxes.repo.docker.daemon import connect, told
from sandboxgym.sandboxes.repo.docker.images import ImageBase, exported, image_base
from sandboxgym.sandboxes.repo.docker.moments import DockerMoment, Image
from sandboxgym.sandboxes.repo.docker.sandbox import DockerSandbox
from sandboxgym.sandboxes.repo.sealing import sealed, unsealed

__all__ = ["DiskNotKeptWarning", "DockerBackend", "connect"]

MAX_LAYERS = 110
"""Of an image; Docker cannot run one with 125, so that longer chains are made one layer."""

_SENT_AT_A_TIME = 1 << 20
_SECONDS_TO_PREPARE = 300
_PREPARE = 'mkdir -p /home/agent; chown -R 1000:1000 /home/agent; [ "$0" = / ] || {\
 mkdir -p "$0"; chown -R 1000:1000 "$0"; }'


class DockerBackend:
    """Sandboxes as containers of a Docker daemon, or of Podman through its Docker socket.

    All that it makes is removed by `close`, when the process ends, or, where it was killed, by the
    next `DockerBackend` on the same machine.

    Args:
        limits: What commands may use. `disk` is that of each container, where the daemon's storage
            can keep it; elsewhere a `DiskNotKeptWarning` says so.
        base_url: The daemon's address; None takes that of the environment (DOCKER_HOST).

    Attributes:
        containers: Makes its containers, and knows whether the daemon keeps the limit `disk`.
    """

    def __init__(self, limits: Limits | None = None, base_url: str | None = None) -> None:
        self.limits = limits or Limits()
        self.client = connect(base_url)
        self.name = uuid.uuid4().hex
        labels = {owners.OWNER: owners.this_process(), owners.BACKEND: self.name}
        self.containers = Containers(self.client, self.limits, labels)
        owners.remove_leftovers(self.client)
        self._bases: dict[tuple[str, str], Image] = {}
        self._indexes: dict[str, travel.Index] = {}
        self._references: Counter[str] = Counter()
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
        moment = self.own(checkpoint)
        shown = {name: self.own(view) for name, view in views.items()}
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
        moment = self.own(checkpoint)
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
            helper = self.containers.create(start.image.name, cap_add=["DAC_OVERRIDE"])
            try:
                if changes.deleted:
                    helper.start()
                    self._delete(helper, changes.deleted)
                helper.put_archive("/", changes.archive)
                image = self.commit(helper, start.image)
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
        self.check_open()
        self.sweep()
        key = (base.image, base.workdir)
        if key not in self._bases:
            with told("prepare the image"):
                self._bases[key] = self._prepare(base)
        return DockerMoment(weakref.ref(self), base, self._bases[key], b"")

    def _prepare(self, base: ImageBase) -> Image:
        container = self.containers.create(
            base.image,
            cap_add=["CHOWN", "DAC_OVERRIDE", "FOWNER"],
            entrypoint=["/bin/sh", "-ec", _PREPARE, base.workdir],
        )
        try:
            container.start()
            status = container.wait(timeout=_SECONDS_TO_PREPARE)["StatusCode"]
            if status != 0:
                said = container.logs().decode("utf-8", "replace")[-500:]
                raise SandboxError(f"the folders of the agent could not be made: {said}")
            return self.commit(container, None)
        finally:
            container.remove(force=True, v=True)

    def _open(self, moment: DockerMoment, binds: Sequence[tuple[str, str]] = ()) -> DockerSandbox:
        self.check_open()
        self.sweep()
        return DockerSandbox(self, moment, tuple(binds))

    def commit(self, container: Any, parent: Image | None) -> Image:
        """A container as an image, with the labels that it has itself."""
        named = {}
        if self.containers.is_podman:  # which removes what has no name along with what is above
            named = {"repository": f"localhost/sandboxgym-{self.name}", "tag": uuid.uuid4().hex}
        made = container.commit(pause=True, **named)
        if len(made.attrs["RootFS"]["Layers"]) < MAX_LAYERS:
            return self._held(made.id, parent)
        lines = [f'LABEL "{name}"="{value}"' for name, value in self.containers.labels.items()]
        with exported(self.client, made.id) as file:
            pieces = iter(lambda: file.read(_SENT_AT_A_TIME), b"")  # a file is not sent in chunks
            flat = self.client.api.import_image_from_stream(pieces, changes=lines)
        owners.remove_image(self.client, made.id)
        return self._held(travel.id_in(flat), None)

    def _held(self, name: str, parent: Image | None) -> Image:
        """An image that is kept while it is referred to; Podman gives equal ones the same name."""
        self._references[name] += 1
        return Image(name, parent, self._dropped)

    def _show(self, sandbox: DockerSandbox, name: str, view: DockerMoment) -> None:
        folder = tarfile.TarInfo(name)
        folder.type, folder.mode, folder.uid, folder.gid = tarfile.DIRTYPE, 0o755, 1000, 1000
        sandbox.put_archive("/", travel.archive_of([(folder, b"")]))
        with exported(self.client, view.image.name) as file:
            sandbox.put_archive(f"/{name}", file)

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

    def own(self, checkpoint: Checkpoint) -> DockerMoment:
        """A checkpoint, seen to be one of this backend."""
        if not isinstance(checkpoint, DockerMoment) or checkpoint.backend() is not self:
            raise SandboxError(
                "this checkpoint is of another backend: export it there and import it here"
            )
        return checkpoint

    def sweep(self) -> None:
        """Remove images that no checkpoint refers to any more.

        Done when something else is, as Python may drop an object in the midst of anything.
        """
        for _ in range(len(self._dropped)):
            name = self._dropped.popleft()
            last = self._references[name] == 1
            if last and not owners.remove_image(self.client, name):
                self._dropped.append(name)
            else:
                self._references[name] -= 1

    @property
    def is_open(self) -> bool:
        """Whether it was not closed."""
        return self._finalizer.alive

    def check_open(self) -> None:
        """See that it was not closed.

        Raises:
            SandboxError: It was.
        """
        if not self.is_open:
            raise SandboxError("this DockerBackend is closed: make another one")


def _remove_and_disconnect(client: Any, label: str) -> None:
    owners.remove_labelled(client, label)
    client.close()


def _batches(names: list[str], size: int = 500) -> Iterator[list[str]]:
    remaining = iter(names)
    while some := list(itertools.islice(remaining, size)):
        yield some
