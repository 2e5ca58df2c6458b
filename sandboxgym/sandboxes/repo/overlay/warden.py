"""The warden: the process that owns one sandbox, and does one thing at a time with it.

The sandbox is a set of namespaces made by bubblewrap over a mounted overlay. Its first process only
holds them; every command is a process of its own that enters them from outside, so nothing in the
sandbox has to be trusted to pass on commands or results.

A snapshot ends the sandbox: every process in it, or it could write into a layer that is thought to
be frozen. Its writable directory becomes a layer, and the sandbox starts anew above that.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.repo.overlay import syscalls, travel, wire
from sandboxgym.sandboxes.repo.overlay.command import Limits, Output, run_command
from sandboxgym.sandboxes.repo.overlay.layers import Merge
from sandboxgym.sandboxes.repo.overlay.links import carry_links, linked_groups
from sandboxgym.sandboxes.repo.overlay.places import place
from sandboxgym.sandboxes.repo.overlay.travel import LayerError

HOLDER = "echo; read -r"
"""What the first process runs: say that all is mounted, then wait for ever."""
HOLDER_PID = "2"
"""As processes are counted inside; 1 is bubblewrap."""


class SandboxStartError(RuntimeError):
    """bubblewrap could not start the sandbox; the message has its words."""


class Warden:
    """Owns one sandbox.

    Args:
        connection: To the owner of the sandbox.
        store: The directory that holds all layers.
        request: What the owner asked for: base, its hard links, layers (topmost first),
            binds, views, limits.
        root: Whether overlays are mounted with all rights.
        user: Who owns the files of a sandbox.
    """

    def __init__(
        self, connection: socket.socket, store: str, request: dict[str, Any], root: bool, user: int
    ) -> None:
        self.connection = connection
        self.store = Path(store)
        self.base: str = request["base"]
        self.binds: list[list[str]] = request["binds"]
        self.bubblewrap: str = request["bubblewrap"]
        self.limits = Limits(**request["limits"])
        self.links: list[list[str]] = request["links"]
        self.layers: list[str] = request["layers"]
        self.name: str = request["name"]
        self.root = root
        self.user = user
        self.views: list[dict[str, Any]] = request["views"]
        self.top: Path | None = None
        self.made = 0
        self.holder: subprocess.Popen[bytes] | None = None
        syscalls.unshare(syscalls.CLONE_NEWNS)
        self.merged = self.store / f"{self.name}.merged"
        self.merged.mkdir()
        self.scratch = [self.new_directory() for _ in self.views]

    def serve(self) -> None:
        """Answer requests until the owner of the sandbox is gone."""
        try:
            while True:
                try:
                    request, body = wire.receive(self.connection)
                    head, answer = self.answer(request, body)
                    wire.send(self.connection, head, answer)
                except wire.ClosedError:
                    return
        finally:
            self.stop()
            self.discard_top()
            for scratch in self.scratch:
                shutil.rmtree(scratch)
            self.merged.rmdir()

    def answer(self, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Do one thing."""
        try:
            if request["do"] == "start":
                self.start()
                return {}, b""
            if request["do"] == "run":
                return self.run(request, body)
            if request["do"] == "freeze":
                return {"layers": self.freeze()}, b""
            if request["do"] == "processes":
                return {"processes": self.processes()}, b""
            if request["do"] == "restore":
                self.stop()
                self.discard_top()
                self.layers = request["layers"]
                self.start()
                return {}, b""
            if request["do"] == "export":
                return {}, self.export(request["layers"])
            if request["do"] == "import":
                return {"layer": self.import_(body)}, b""
            raise ValueError(f"a warden does not know how to {request['do']!r}")
        except (OSError, SandboxStartError, LayerError) as error:
            return {"error": f"{type(error).__name__}: {error}"}, b""

    def start(self) -> None:
        """Mount the layers and start the process that holds the namespaces."""
        if self.top is None:
            self.top = self.new_directory()
            self.carry_links(self.top / "files")
        root = str(self.merged)
        with place(root, "/", folder=True) as here:
            self.mount(here, self.base, self.layers, self.top)
        for source, target in self.binds:
            with place(root, target, folder=Path(source).is_dir()) as here:
                syscalls.bind_read_only(source, here)
        for view, scratch in zip(self.views, self.scratch, strict=True):
            with place(root, view["target"], folder=True) as here:
                self.mount(here, view["base"], view["layers"], scratch)
        self.holder = start_holder(
            self.bubblewrap, str(self.merged), self.user if self.root else None
        )

    def mount(self, here: int, base: str, layers: list[str], top: Path) -> None:
        """Mount layers over a base at a place, with a directory that takes what is written."""
        lower = [*(str(self.store / layer / "files") for layer in layers), base]
        upper, work = str(top / "files"), str(top / "work")
        syscalls.mount_overlay(here, lower, upper, work, privileged=self.root)

    def carry_links(self, upper: Path) -> None:
        """Keep hard links together in a new writable layer; every layer above the base has all."""
        below = self.store / self.layers[0] / "files" if self.layers else Path(self.base)
        carry_links(below, upper, linked_groups(below) if self.layers else self.links)
        status = below.lstat()
        upper.chmod(stat.S_IMODE(status.st_mode))
        os.utime(upper, ns=(status.st_atime_ns, status.st_mtime_ns))

    def stop(self) -> None:
        """End every process of the sandbox, and wait until the last one is gone."""
        if self.holder is not None:
            pid = child_of(self.holder.pid)
            if pid is not None:
                os.kill(pid, signal.SIGKILL)  # the first of its namespace: the others go with it
            self.holder.kill()
            self.holder.wait()
            self.holder = None
            syscalls.unmount(str(self.merged))  # and with it what is mounted inside

    def freeze(self) -> list[str]:
        """Make a layer of what was written since the last one; the layers, topmost first."""
        self.stop()
        if self.top is not None:
            shutil.rmtree(self.top / "work")
            self.layers = [self.top.name, *self.layers]
            self.top = None
        self.start()
        return self.layers

    def run(self, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Run a command; what it printed and the shell state it left follow each other."""
        if self.holder is None or self.holder.poll() is not None:
            self.stop()
            self.start()
        assert self.holder is not None
        inside = child_of(self.holder.pid)
        if inside is None:
            raise SandboxStartError("the sandbox ended as a command was about to start")
        command_end = request["command"]
        stdin_end = command_end + request["stdin"]
        output: Output = run_command(
            inside,
            body[:command_end],
            body[stdin_end:],
            request["environment"],
            request["workdir"],
            body[command_end:stdin_end],
            request["timeout"],
            request["output"],
            self.limits,
        )
        if output.timed_out or output.holder_gone:
            self.stop()
            self.start()
        head = {
            "returncode": output.returncode,
            "timed_out": output.timed_out,
            "ended_sandbox": output.holder_gone,
            "elided": output.elided,
            "printed": len(output.printed),
            "state": output.state is not None,
        }
        return head, output.printed + (output.state or b"")

    def export(self, names: list[str]) -> bytes:
        """What layers say together, as an archive."""
        merged, view = self.new_directory(), self.new_directory()
        place_of_view = self.store / f"{self.name}.view"
        place_of_view.mkdir()
        with place(str(place_of_view), "/", folder=True) as here:
            self.mount(here, self.base, names, view)
        try:
            merge = Merge(Path(self.base), place_of_view, merged / "files", privileged=self.root)
            merge.run([self.store / name / "files" for name in names])
            return travel.pack(merged / "files")
        finally:
            syscalls.unmount(str(place_of_view))
            place_of_view.rmdir()
            shutil.rmtree(view)
            shutil.rmtree(merged)

    def import_(self, archive: bytes) -> str:
        """A layer from an archive; its name."""
        layer = self.new_directory()
        try:
            travel.Unpacking(layer / "files", self.user, privileged=self.root).run(archive)
        except BaseException:
            shutil.rmtree(layer)
            raise
        return layer.name

    def processes(self) -> list[str]:
        """Command lines of what still runs in the sandbox."""
        if self.holder is None:
            return []
        inside = child_of(self.holder.pid)
        return [] if inside is None else command_lines(inside)

    def new_directory(self) -> Path:
        """A new writable layer."""
        top = self.store / f"{self.name}.{self.made}"
        self.made += 1
        for path in (top, top / "files", top / "work"):
            path.mkdir()
        os.chown(top / "files", self.user, self.user)
        return top

    def discard_top(self) -> None:
        """Forget what was written since the last layer."""
        if self.top is not None:
            shutil.rmtree(self.top)
            self.top = None


def start_holder(bubblewrap: str, root: str, user: int | None) -> subprocess.Popen[bytes]:
    """Start bubblewrap over a mounted tree and wait until its namespaces are ready."""
    program = os.open(bubblewrap, os.O_RDONLY)  # for a user who may not even see where it lies

    def become_user() -> None:
        if user is not None:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)

    try:
        process = subprocess.Popen(
            [
                "bwrap",
                *("--unshare-all", "--die-with-parent", "--new-session"),
                *("--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
                *("--cap-drop", "ALL", "--bind", root, "/"),
                *("--proc", "/proc", "--dev", "/dev", "--chdir", "/"),
                *("--", "/bin/bash", "--norc", "--noprofile", "-c", HOLDER),
            ],
            executable=f"/proc/self/fd/{program}",
            pass_fds=[program],
            preexec_fn=become_user,
            env={"PATH": "/usr/bin:/bin"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    finally:
        os.close(program)
    assert process.stdout is not None
    assert process.stderr is not None
    if process.stdout.read(1) != b"\n":
        words = process.stderr.read().decode(errors="replace").strip()
        process.wait()
        raise SandboxStartError(f"bubblewrap did not start the sandbox: {words}")
    return process


def child_of(pid: int) -> int | None:
    """The only child of bubblewrap: the first process of the sandbox's namespaces."""
    return next(iter(children_of(pid)), None)


def command_lines(first: int) -> list[str]:
    """Command lines of what runs in a sandbox beside the two processes that hold it."""
    lines: list[str] = []
    todo = children_of(first)
    while todo:
        pid = todo.pop(0)
        todo += children_of(pid)
        try:
            inside = Path(f"/proc/{pid}/status").read_text().partition("NSpid:")[2].split("\n")[0]
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if line and inside.split()[-1] != HOLDER_PID:
            lines.append(line.decode("utf-8", "replace").strip())
    return lines


def children_of(pid: int) -> list[int]:
    """Children of a process; none where it is gone."""
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return []
