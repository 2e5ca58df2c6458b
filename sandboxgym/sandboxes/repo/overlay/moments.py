"""Moments of overlay sandboxes: the frozen layers that they consist of, and a shell's state."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandboxgym.sandboxes.repo.backend import Base, Checkpoint, SandboxError

if TYPE_CHECKING:
    from sandboxgym.sandboxes.repo.overlay.backend import OverlayBackend


class Layer:
    """A frozen directory of what was written; dropped when nothing refers to it any more."""

    def __init__(self, name: str, drop: Callable[[str], None]) -> None:
        self.name = name
        weakref.finalize(self, drop, name)


@dataclass(frozen=True)
class Moment(Checkpoint):
    """The checkpoint of this backend: layers above a base, topmost first, and a shell's state."""

    backend: weakref.ref[OverlayBackend] = field(repr=False)
    base: Base
    layers: tuple[Layer, ...]
    shell: bytes

    @property
    def names(self) -> list[str]:
        """The names of its layers."""
        return [layer.name for layer in self.layers]

    def pack(self) -> bytes:
        """This moment as bytes, which `import_` of another backend takes.

        Raises:
            SandboxError: Its backend is closed.
        """
        backend = self.backend()
        if backend is None:
            raise SandboxError("the backend of this moment is gone, and its layers with it")
        return backend.export(self)
