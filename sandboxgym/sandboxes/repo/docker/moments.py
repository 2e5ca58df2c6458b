"""Moments of containers: committed images, and a shell's state."""

from __future__ import annotations

import weakref
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandboxgym.sandboxes.repo.backend import Checkpoint, SandboxError
from sandboxgym.sandboxes.repo.docker.images import ImageBase

if TYPE_CHECKING:
    from sandboxgym.sandboxes.repo.docker.backend import DockerBackend


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
