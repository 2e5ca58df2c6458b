"""The warden: the process that owns one sandbox, and does one thing at a time with it.

The sandbox is a set of namespaces over a mounted overlay (`holder.py`). Its first process only
holds them; every command is a process of its own that enters them from outside, so nothing in the
sandbox has to be trusted to pass on commands or results.

A snapshot ends the sandbox: every process in it, or it could write into a layer that is thought to
be frozen. Its writable directory becomes a layer, and the sandbox starts anew above that.
"""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.repo.overlay import files, syscalls, trees, wire
from sandboxgym.sandboxes.repo.overlay.cgroups import Group
from sandboxgym.sandboxes.repo.overlay.command import Call, Limits, run_command
from sandboxgym.sandboxes.repo.overlay.holder import Holder, SandboxStartError
from sandboxgym.sandboxes.repo.overlay.rooted import Rooted
from sandboxgym.sandboxes.repo.overlay.shelf import Privileges, Shelf, Written
from sandboxgym.sandboxes.repo.overlay.travel import LayerError

MAX_CHAIN = 64
"""So many layers above the base become one, as each makes mounting and looking up slower."""
_ENDING = {"seconds", "total_memory", "processes"}  # limits whose reaching ends all processes
_FULL = 64 * 1024  # a file system with less room than this is full


class Warden:
    """Owns one sandbox.

    Args:
        connection: To the owner of the sandbox.
        store: The directory that holds all layers.
        request: What the owner asked for: base, its hard links, layers (topmost first),
            binds, folders to be shown empty, views, limits.
        group: The control groups of this process and all that it starts.
        privileges: What it can do.
    """

    def __init__(
        self,
        connection: socket.socket,
        store: Path,
        request: dict[str, Any],
        group: Group,
        privileges: Privileges,
    ) -> None:
        self.connection = connection
        self.shelf = Shelf(store, request["name"], request["base"], request["links"], privileges)
        self.layers: list[str] = request["layers"]
        self.bubblewrap: str = request["bubblewrap"]
        self.limits = Limits(**request["limits"])
        self.group = group
        self.user = privileges.user
        self.start_as = privileges.user if privileges.root else None
        self.top: Written | None = None
        self.holder: Holder | None = None
        syscalls.unshare(syscalls.CLONE_NEWNS)
        self.tree = Rooted(self.shelf, request["binds"], request["hidden"], request["views"])

    def serve(self) -> None:
        """Start, and answer requests until the owner of the sandbox takes leave or is gone.

        Who asks, or takes leave, has read the answer before. Layers of which the last answer told
        nobody are removed.
        """
        try:
            request, body = {"do": "start"}, b""
            while request["do"] != "end":
                head, answer = self.answer(request, body)
                wire.send(self.connection, head, answer)
                request, body = wire.receive(self.connection)
                self.shelf.kept.clear()
        except wire.ClosedError:
            pass  # the owner is gone, or was interrupted
        finally:
            self.stop()
            self.shelf.forget_kept()
            trees.remove(self.shelf.own)

    def answer(self, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Do one thing."""
        try:
            match request["do"]:
                case "start":
                    self.start()
                    return {}, b""
                case "run":
                    return self.run(request, body)
                case "freeze":
                    return {"layers": self.freeze()}, b""
                case "processes":
                    return {"processes": self.processes()}, b""
                case "restore":
                    self.restore(request["layers"])
                    return {}, b""
                case "read":
                    return {}, files.read(self.tree.root, request["path"], request["limit"])
                case "write":
                    path, mode = request["path"], request["mode"]
                    files.write(self.tree.root, path, body, mode, self.user)
                    return {}, b""
                case "export":
                    return {}, self.shelf.export(request["layers"])
                case "import":
                    return {"layer": self.shelf.import_(body, request["limit"])}, b""
            raise ValueError(f"a warden does not know how to {request['do']!r}")
        except (OSError, SandboxStartError, LayerError) as error:
            return failure(error), b""

    def start(self) -> None:
        """Mount the layers and start the process that holds the namespaces."""
        if self.top is None:
            self.top = self.shelf.new_top(self.layers)
        try:
            self.tree.mount(self.layers, self.top)
            root, memory = str(self.tree.root), self.tree.shared_memory
            self.holder = Holder(self.bubblewrap, root, memory, self.start_as)
        except BaseException:
            self.tree.unmount()
            raise

    def stop(self) -> None:
        """End every process of the sandbox, and wait until the last one is gone."""
        if self.holder is not None:
            self.holder.end()
            self.holder = None
            self.tree.unmount()

    def freeze(self) -> list[str]:
        """Make a layer of what was written since the last one; the layers, topmost first."""
        before, layers = self.top, self.layers
        self.stop()
        if before is not None:
            name = self.shelf.keep(before)
            self.top, self.layers = None, [name, *layers]
        try:
            self.compact()
            self.start()
        except BaseException:
            if before is not None:
                self.shelf.take_back(name, before)
                self.shelf.forget_kept()
                self.top, self.layers = before, layers
                self.start()
            raise
        if before is not None:
            trees.remove(before.folder)
        self.shelf.forget_kept(but=self.layers)  # what became part of another one
        return self.layers

    def compact(self) -> None:
        """Make one layer of a long chain; snapshots that refer to its layers keep them."""
        if len(self.layers) <= MAX_CHAIN:
            return
        merged = self.shelf.merged(self.layers)
        self.layers = [self.shelf.keep(merged)]
        trees.remove(merged.folder)

    def restore(self, layers: list[str]) -> None:
        """Go to other layers; where that fails, this sandbox goes on as it was.

        Unless it is what was written here that leaves no room for it: that is not needed then.
        """
        before, here = self.top, self.layers
        self.stop()
        self.top, self.layers = None, layers
        try:
            self.start()
        except BaseException as error:
            if before is not None and errno_of(error) == errno.ENOSPC:
                trees.remove(before.folder)
                self.start()
                return
            self.top, self.layers = before, here
            self.start()
            raise
        if before is not None:
            trees.remove(before.folder)

    def run(self, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Run a command; what it printed and the shell state it left follow each other."""
        if self.holder is None or not self.holder.lives():
            self.stop()
            self.start()
        assert self.holder is not None
        command_end = request["command"]
        stdin_end = command_end + request["stdin"]
        output = run_command(
            self.holder,
            Call(
                command=body[:command_end],
                stdin=body[command_end:stdin_end],
                state=body[stdin_end:],
                environment=request["environment"],
                workdir=request["workdir"],
                seconds=request["timeout"],
                output=request["output"],
            ),
            self.limits,
        )
        reached = {*output.reached, *self.group.reached()}
        if self.is_full():
            reached.add("disk")
        if self.holder.count() > self.limits.processes // 2:
            reached.add("processes")  # what is left of them would fail every later command
        if reached & _ENDING or output.holder_gone:
            self.stop()
            self.start()
        head = {
            "returncode": output.returncode,
            "reached": sorted(reached),
            "ended_sandbox": output.holder_gone,
            "elided": output.elided,
            "printed": len(output.printed),
            "state": output.state is not None,
        }
        return head, output.printed + (output.state or b"")

    def is_full(self) -> bool:
        """Whether there is no room for what commands write."""
        room = os.statvfs(self.shelf.own)
        return room.f_bavail * room.f_frsize < _FULL or room.f_favail == 0

    def processes(self) -> list[str]:
        """Command lines of what still runs in the sandbox."""
        return [] if self.holder is None else self.holder.command_lines()


def failure(error: Exception) -> dict[str, Any]:
    """What the owner of a sandbox is told of an error."""
    return {"error": f"{type(error).__name__}: {error}", "errno": errno_of(error)}


def errno_of(error: BaseException) -> int | None:
    """The kernel's number of an error."""
    return error.errno if isinstance(error, OSError) else None
