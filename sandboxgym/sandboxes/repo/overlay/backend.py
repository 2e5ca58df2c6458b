"""`OverlayBackend`: sandboxes as layers over a directory."""

from __future__ import annotations

import contextlib
import functools
import itertools
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import sandboxgym
from sandboxgym.core.errors import SnapshotCorruptError
from sandboxgym.sandboxes.repo.backend import (
    Base,
    Checkpoint,
    DiskFullError,
    Limits,
    SandboxError,
)
from sandboxgym.sandboxes.repo.overlay.links import linked_groups
from sandboxgym.sandboxes.repo.overlay.moments import Moment
from sandboxgym.sandboxes.repo.overlay.owning import OwnedKeeper, find_bubblewrap
from sandboxgym.sandboxes.repo.overlay.sandbox import OverlaySandbox
from sandboxgym.sandboxes.repo.sealing import sealed, unsealed

__all__ = ["Moment", "OverlayBackend", "OverlaySandbox", "find_bubblewrap"]


class OverlayBackend:
    """Sandboxes as layers over a directory, with bubblewrap around them. Linux only.

    Args:
        limits: What commands may use.
        bubblewrap: The program `bwrap`; None looks for it.
    """

    def __init__(self, limits: Limits | None = None, bubblewrap: str | None = None) -> None:
        self.limits = limits or Limits()
        self.bubblewrap = bubblewrap or find_bubblewrap()
        self._names = map(str, itertools.count())
        self._keeper = OwnedKeeper(self.bubblewrap, self.limits.disk)

    @property
    def privileged(self) -> bool:
        """Whether overlays are mounted with the rights of the machine's root."""
        return self._keeper.root

    @property
    def keeper_pid(self) -> int:
        """The process that holds all sandboxes and layers."""
        return self._keeper.process.pid

    def create(self, base: Base) -> OverlaySandbox:
        """A new sandbox over a base."""
        sandbox = self._open(Moment(weakref.ref(self), base, (), b""))
        sandbox.ready()
        return sandbox

    def fork(
        self,
        checkpoint: Checkpoint,
        *,
        views: Mapping[str, Checkpoint] = MappingProxyType({}),
        binds: Sequence[tuple[str, str]] = (),
        fresh_shell: bool = False,
    ) -> OverlaySandbox:
        """A new sandbox that goes on from a moment of another one.

        It may still be starting when it is given back, so that many start at the same time. Where
        it cannot, the first thing that is asked of it raises `SandboxError`.

        Args:
            checkpoint: The moment.
            views: Whole trees of other moments to be shown inside, by the name of a folder in the
                root. They can be written to, which nobody else sees.
            binds: Further directories and files of the machine to be shown inside, read-only:
                (there, inside). Snapshots have an empty folder or file in their place.
            fresh_shell: Start from a new shell instead of the state of the moment's.
        """
        shown = {name: self.own(moment) for name, moment in views.items()}
        moment = self.own(checkpoint)
        return self._open(replace(moment, shell=b"") if fresh_shell else moment, shown, binds)

    def export(self, checkpoint: Checkpoint) -> bytes:
        """A moment as bytes that `import_` takes: what differs from the base."""
        moment = self.own(checkpoint)
        with self._open(replace(moment, layers=())) as helper:
            archive = helper.export(moment)
        return sealed(moment.base.name, moment.shell, archive)

    def import_(self, base: Base, exported: bytes) -> Moment:
        """A moment from bytes. They are data of unknown origin and are checked as such.

        Raises:
            SpecMismatchError: They say how another base was changed.
            SnapshotCorruptError: They are not what `export` makes.
            DiskFullError: There is no room for what they hold.
        """
        shell, archive = unsealed(exported, base, self.limits.disk)
        start = Moment(weakref.ref(self), base, (), shell)
        with self._open(start) as helper:
            helper.ready()
            try:
                layer = helper.import_(archive, self.limits.disk)
            except DiskFullError:
                raise
            except SandboxError as error:
                raise SnapshotCorruptError(f"the layer cannot be unpacked: {error}") from error
        return replace(start, layers=(layer,))

    def own(self, checkpoint: Checkpoint) -> Moment:
        """A checkpoint, seen to be one of this backend.

        Raises:
            SandboxError: It is not.
        """
        if not isinstance(checkpoint, Moment) or checkpoint.backend() is not self:
            raise SandboxError(
                "this checkpoint is of another backend: export it there and import it here"
            )
        return checkpoint

    def close(self) -> None:
        """End all sandboxes and forget all layers."""
        self._keeper.close()

    def __deepcopy__(self, memo: object) -> OverlayBackend:
        """Itself: Gymnasium copies the arguments of environments, and means the same backend."""
        return self

    def __enter__(self) -> OverlayBackend:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _open(
        self,
        moment: Moment,
        views: Mapping[str, Moment] = MappingProxyType({}),
        binds: Sequence[tuple[str, str]] = (),
    ) -> OverlaySandbox:
        if not self._keeper.alive:
            raise SandboxError("this OverlayBackend is closed: make another one")
        connection = self._keeper.open(next(self._names), self._request(moment, views, binds))
        return OverlaySandbox(self, connection, moment, self._keeper.drop, tuple(views.values()))

    def _request(
        self, moment: Moment, views: Mapping[str, Moment], binds: Sequence[tuple[str, str]]
    ) -> dict[str, Any]:
        """What a warden has to know of its sandbox."""
        limits = self.limits
        shown = (*moment.base.binds, *binds)
        return {
            "base": str(moment.base.root),
            "links": _links_of(moment.base.root),
            "binds": [list(bind) for bind in shown],
            "hidden": hidden_below(shown),
            "layers": moment.names,
            "views": [
                {"target": f"/{name}", "base": str(view.base.root), "layers": view.names}
                for name, view in views.items()
            ],
            "limits": {
                "memory": limits.memory,
                "total_memory": limits.total_memory,
                "processes": limits.processes,
                "file_size": limits.file_size,
                "open_files": limits.open_files,
            },
        }


def hidden_below(binds: Sequence[tuple[str, str]]) -> list[str]:
    """Where sandboxes would see the solutions of our own tasks.

    They would where this package is installed in a folder of the machine that is shown to them,
    such as /usr.
    """
    tasks = Path(sandboxgym.__file__).resolve().parent / "sandboxes" / "repo" / "tasks"
    seen = []
    for there, inside in binds:
        with contextlib.suppress(ValueError):  # not below this one
            seen.append(str(Path(inside, tasks.relative_to(Path(there).resolve()))))
    return seen


@functools.lru_cache(maxsize=64)
def _links_of(base: Path) -> list[list[str]]:
    """Hard links in a base, which nobody may change while there are sandboxes."""
    return linked_groups(base)
