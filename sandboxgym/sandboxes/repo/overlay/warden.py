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
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.repo.overlay import files, syscalls, travel, trees, wire
from sandboxgym.sandboxes.repo.overlay.cgroups import Group
from sandboxgym.sandboxes.repo.overlay.command import Call, Limits, run_command
from sandboxgym.sandboxes.repo.overlay.holder import Holder, SandboxStartError
from sandboxgym.sandboxes.repo.overlay.layers import Merge
from sandboxgym.sandboxes.repo.overlay.links import carry_links, linked_groups
from sandboxgym.sandboxes.repo.overlay.places import place
from sandboxgym.sandboxes.repo.overlay.travel import LayerError
from sandboxgym.sandboxes.repo.overlay.unpacking import Unpacking

LAYERS, WARDENS, PROGRAM = "layers", "wardens", "program"
"""In the store: what is frozen, for each warden what it works with, and bubblewrap."""
SHARED_MEMORY = "/dev/shm"
HIDDEN = "/proc"
"""Where the tree's shared memory is shown to bubblewrap, which covers it with what belongs there.

Not by its own path, on which there could be links: bubblewrap would follow them.
"""
MAX_CHAIN = 64
"""So many layers above the base become one, as each makes mounting and looking up slower."""
_ENDING = {"seconds", "total_memory", "processes"}  # limits whose reaching ends all processes
_FULL = 64 * 1024  # a file system with less room than this is full


@dataclass(frozen=True)
class Privileges:
    """Who mounts, and as whom commands run.

    Attributes:
        root: Whether the keeper is the machine's root, which can do more with an overlay.
        user: The user and group of what runs in a sandbox and owns its files, seen from the keeper.
    """

    root: bool
    user: int


@dataclass(frozen=True)
class Written:
    """A writable directory of an overlay, with the one that the kernel works in."""

    folder: Path

    @property
    def files(self) -> Path:
        """What was written."""
        return self.folder / "files"

    @property
    def work(self) -> Path:
        """What the kernel needs beside it while it is mounted."""
        return self.folder / "work"


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
        self.frozen = store / LAYERS
        self.name: str = request["name"]
        self.own = store / WARDENS / self.name
        self.own.mkdir(0o711)
        self.base: str = request["base"]
        self.links: list[list[str]] = request["links"]
        self.layers: list[str] = request["layers"]
        self.binds: list[list[str]] = request["binds"]
        self.hidden: list[str] = request["hidden"]
        self.views: list[dict[str, Any]] = request["views"]
        self.bubblewrap: str = request["bubblewrap"]
        self.limits = Limits(**request["limits"])
        self.group = group
        self.privileges = privileges
        self.top: Written | None = None
        self.made = 0
        self.holder: Holder | None = None
        syscalls.unshare(syscalls.CLONE_NEWNS)
        self.merged, self.nothing = self.own / "merged", self.own / "nothing"
        for folder in (self.merged, self.nothing):
            folder.mkdir()
        self.scratch = [self.new_written() for _ in self.views]

    def serve(self) -> None:
        """Start, and answer requests until the owner of the sandbox is gone."""
        try:
            request, body = {"do": "start"}, b""
            while True:
                try:
                    head, answer = self.answer(request, body)
                    wire.send(self.connection, head, answer)
                    request, body = wire.receive(self.connection)
                except wire.ClosedError:
                    return
        finally:
            self.stop()
            trees.remove(self.own)

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
                    return {}, files.read(self.merged, request["path"], request["limit"])
                case "write":
                    path, mode, user = request["path"], request["mode"], self.privileges.user
                    files.write(self.merged, path, body, mode, user)
                    return {}, b""
                case "export":
                    return {}, self.export(request["layers"])
                case "import":
                    return {"layer": self.import_(body, request["limit"])}, b""
            raise ValueError(f"a warden does not know how to {request['do']!r}")
        except (OSError, SandboxStartError, LayerError) as error:
            return failure(error), b""

    def start(self) -> None:
        """Mount the layers and start the process that holds the namespaces."""
        if self.top is None:
            self.top = self.new_top()
        root = str(self.merged)
        try:
            with place(root, "/", folder=True) as here:
                self.mount(here, self.base, self.layers, self.top)
            for source, target in self.binds:
                with place(root, target, folder=Path(source).is_dir()) as here:
                    syscalls.bind_read_only(source, here)
            for target in self.hidden:
                with place(root, target, folder=True) as here:
                    syscalls.bind_read_only(str(self.nothing), here)
            for view, scratch in zip(self.views, self.scratch, strict=True):
                with place(root, view["target"], folder=True) as here:
                    self.mount(here, view["base"], view["layers"], scratch)
            with place(root, SHARED_MEMORY, folder=True) as memory:
                self.give(memory)
                with place(root, HIDDEN, folder=True) as here:
                    syscalls.attach(syscalls.clone_mount(memory), here)
            user = self.privileges.user if self.privileges.root else None
            self.holder = Holder(self.bubblewrap, root, f"{root}{HIDDEN}", user)
        except BaseException:
            self.unmount()
            raise

    def give(self, here: int) -> None:
        """Make the sandbox's user the owner of a folder."""
        user = self.privileges.user
        if os.fstat(here).st_uid != user:
            os.chown(f"/proc/self/fd/{here}", user, user)

    def mount(self, here: int, base: str, layers: Sequence[str], top: Written) -> None:
        """Mount layers over a base at a place, with a directory that takes what is written."""
        below = os.open(base, os.O_PATH | os.O_DIRECTORY)
        try:  # a name of the base that says nothing: it can be read inside
            lower = [*(str(self.frozen / layer) for layer in layers), f"/proc/self/fd/{below}"]
            syscalls.mount_overlay(
                here, lower, str(top.files), str(top.work), privileged=self.privileges.root
            )
        finally:
            os.close(below)

    def new_top(self) -> Written:
        """A new writable layer, in which files with several names are kept together.

        Every layer above the base holds all of those, so the topmost one has to be looked at.
        """
        below = self.frozen / self.layers[0] if self.layers else Path(self.base)
        top = self.new_written()
        try:
            groups = linked_groups(below) if self.layers else self.links
            carry_links(below, top.files, groups)
            status = below.lstat()
            top.files.chmod(stat.S_IMODE(status.st_mode))
            os.utime(top.files, ns=(status.st_atime_ns, status.st_mtime_ns))
        except BaseException:
            trees.remove(top.folder)
            raise
        return top

    def stop(self) -> None:
        """End every process of the sandbox, and wait until the last one is gone."""
        if self.holder is not None:
            self.holder.end()
            self.holder = None
            self.unmount()

    def unmount(self) -> None:
        """Take away what is mounted, as far as it is, and with it what is mounted inside."""
        if self.merged.is_mount():
            syscalls.unmount(str(self.merged))

    def freeze(self) -> list[str]:
        """Make a layer of what was written since the last one; the layers, topmost first."""
        before, layers = self.top, self.layers
        self.stop()
        if before is not None:
            name = f"{self.name}.{before.folder.name}"
            before.files.rename(self.frozen / name)
            self.top, self.layers = None, [name, *layers]
        try:
            self.compact()
            self.start()
        except BaseException:
            if before is not None:
                (self.frozen / name).rename(before.files)
                self.top, self.layers = before, layers
                self.start()
            raise
        if before is not None:
            trees.remove(before.folder)
        return self.layers

    def compact(self) -> None:
        """Make one layer of a long chain; snapshots that refer to its layers keep them."""
        if len(self.layers) <= MAX_CHAIN:
            return
        merged = self.merged_layer(self.layers)
        name = f"{self.name}.{merged.folder.name}"
        merged.files.rename(self.frozen / name)
        trees.remove(merged.folder)
        self.layers = [name]

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
        room = os.statvfs(self.own)
        return room.f_bavail * room.f_frsize < _FULL or room.f_favail == 0

    def processes(self) -> list[str]:
        """Command lines of what still runs in the sandbox."""
        return [] if self.holder is None else self.holder.command_lines()

    def merged_layer(self, names: Sequence[str]) -> Written:
        """One layer that says what several say together."""
        view = self.own / "view"
        view.mkdir()
        merged, scratch = self.new_written(), self.new_written()
        try:
            with place(str(view), "/", folder=True) as here:
                self.mount(here, self.base, names, scratch)
            try:
                merge = Merge(Path(self.base), view, merged.files, privileged=self.privileges.root)
                merge.run([self.frozen / name for name in names])
            finally:
                syscalls.unmount(str(view))
        except BaseException:
            trees.remove(merged.folder)
            raise
        finally:
            view.rmdir()
            trees.remove(scratch.folder)
        return merged

    def export(self, names: list[str]) -> bytes:
        """What layers say together, as an archive."""
        merged = self.merged_layer(names)
        try:
            return travel.pack(merged.files)
        finally:
            trees.remove(merged.folder)

    def import_(self, archive: bytes, limit: int) -> str:
        """A layer from an archive; its name."""
        written = self.new_written()
        try:
            unpacking = Unpacking(
                written.files, self.privileges.user, limit, privileged=self.privileges.root
            )
            unpacking.run(archive)
            name = f"{self.name}.{written.folder.name}"
            written.files.rename(self.frozen / name)
        finally:
            trees.remove(written.folder)
        return name

    def new_written(self) -> Written:
        """A new directory to be written to."""
        written = Written(self.own / str(self.made))
        self.made += 1
        for path in (written.folder, written.files, written.work):
            path.mkdir(0o711)
        os.chown(written.files, self.privileges.user, self.privileges.user)
        return written


def failure(error: Exception) -> dict[str, Any]:
    """What the owner of a sandbox is told of an error."""
    return {"error": f"{type(error).__name__}: {error}", "errno": errno_of(error)}


def errno_of(error: BaseException) -> int | None:
    """The kernel's number of an error."""
    return error.errno if isinstance(error, OSError) else None
