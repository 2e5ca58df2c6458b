"""`OverlaySandbox`: the owner's end of one sandbox, whose warden does what it is told here."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sandboxgym.sandboxes.repo.backend import (
    MAX_FILE,
    Checkpoint,
    CommandResult,
    DiskFullError,
    SandboxBrokenError,
    SandboxError,
)
from sandboxgym.sandboxes.repo.overlay import wire
from sandboxgym.sandboxes.repo.overlay.moments import Layer, Moment
from sandboxgym.sandboxes.repo.results import BYTES_OF_A_CHARACTER, refuse_background, result_of

if TYPE_CHECKING:
    from sandboxgym.sandboxes.repo.overlay.backend import OverlayBackend


class OverlaySandbox:
    """One sandbox.

    Args:
        backend: Of which it is one.
        connection: To its warden, which starts it without being asked.
        moment: Where it begins.
        drop: Called with the name of each of its layers that nothing refers to any more.
        views: Further moments that it shows, whose layers must not be dropped.
    """

    def __init__(
        self,
        backend: OverlayBackend,
        connection: socket.socket,
        moment: Moment,
        drop: Callable[[str], None],
        views: tuple[Moment, ...] = (),
    ) -> None:
        self.backend = backend
        self._views = views
        self._connection = connection
        self._moment = moment
        self._drop = drop
        self._owner = os.getpid()
        self._finalizer = weakref.finalize(self, _take_leave, connection, self._owner)
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
            if type(error) is SandboxBrokenError:  # by nobody yet
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
        with self._abandoned_if_interrupted():
            layers = tuple(known.get(name) or Layer(name, self._drop) for name in names)
            self._moment = replace(moment, layers=layers)
        return self._moment

    def restore(self, checkpoint: Checkpoint) -> None:
        """Return to a moment of this or of another sandbox of the same backend."""
        moment = self.backend.own(checkpoint)
        if moment.base != self._moment.base:
            raise SandboxError("this checkpoint is one above another base: fork it instead")
        self._ask("restore", layers=moment.names)
        self._moment = moment

    def export(self, moment: Moment) -> bytes:
        """What a moment above the same base has beyond it, as an archive."""
        return self._ask("export", layers=moment.names)[1]

    def import_(self, archive: bytes, limit: int) -> Layer:
        """A layer from an archive, which is checked.

        Raises:
            SandboxError: It is none, or has more than `limit` bytes.
        """
        return Layer(self._ask("import", archive, limit=limit)[0]["layer"], self._drop)

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
        """Have the warden do something."""
        if not self._finalizer.alive:
            raise SandboxError("this sandbox is closed")
        if os.getpid() != self._owner:
            raise SandboxError("this sandbox belongs to the process that this one was forked from")
        self.ready()
        with self._abandoned_if_interrupted():
            try:
                wire.send(self._connection, {"do": what, **more}, body)
            except wire.ClosedError as error:
                raise _lost(what) from error
            return self._answer(what)

    @contextmanager
    def _abandoned_if_interrupted(self) -> Iterator[None]:
        """Close the sandbox without taking leave where an interrupt ends what is done here.

        An answer that is still to come would be taken for that to the next question. And what the
        last one told of may be known to nobody: the warden then removes it.
        """
        try:
            yield
        except SandboxError:
            raise
        except BaseException:
            if self._finalizer.detach():
                wire.hang_up(self._connection, self._owner)
            raise

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


def _take_leave(connection: socket.socket, owner: int) -> None:
    if os.getpid() == owner:
        with contextlib.suppress(wire.ClosedError, OSError):
            wire.send(connection, {"do": "end"})
    wire.hang_up(connection, owner)


def _lost(what: str) -> SandboxError:
    return SandboxError(f"the sandbox was lost while it was asked to {what}")
