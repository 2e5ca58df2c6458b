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

import os
import selectors
import shutil
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from sandboxgym.sandboxes.repo.overlay import syscalls, wire
from sandboxgym.sandboxes.repo.overlay.warden import Warden

STORE = "/dev/shm"  # in the keeper's own mount namespace; it exists, and no base is ever there
SANDBOX_USER = 65533
"""As root, the user and group outside of the sandbox as whom commands run."""


@dataclass(frozen=True)
class Privileges:
    """Who mounts, and as whom commands run.

    Attributes:
        root: Whether the keeper is the machine's root, which can do more with an overlay.
        user: The user and group of what runs in a sandbox and owns its files, seen from the keeper.
    """

    root: bool
    user: int


def main(descriptor: int, size: int) -> None:
    """Be a keeper.

    Args:
        descriptor: The connection to the owner.
        size: How many bytes all layers together may take.
    """
    owner = socket.socket(fileno=descriptor)
    try:
        privileges = enter_own_namespace()
        syscalls.mount_tmpfs(STORE, size)
        Path(STORE).chmod(0o711)
    except OSError as error:
        wire.send(owner, {"error": str(error)})
        return
    wire.send(owner, {"root": privileges.root, "user": privileges.user})
    serve(owner, privileges)


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


def serve(owner: socket.socket, privileges: Privileges) -> None:
    """Do what the owner asks until it is gone, and reap wardens that end."""
    syscalls.become_subreaper()
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    wardens: set[int] = set()
    with selectors.DefaultSelector() as events:
        events.register(owner, selectors.EVENT_READ)
        events.register(woken, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in events.select()]
            if woken in ready:
                woken.recv(4096)
                reap(wardens)
            if owner in ready and not answer(owner, privileges, wardens, [wake, woken]):
                break
    signal.set_wakeup_fd(-1)
    for warden in wardens:
        os.kill(warden, signal.SIGKILL)


def answer(
    owner: socket.socket,
    privileges: Privileges,
    wardens: set[int],
    own_sockets: list[socket.socket],
) -> bool:
    """Serve one request; False where the owner is gone."""
    try:
        request, _ = wire.receive(owner)
        if request["do"] == "drop":
            shutil.rmtree(f"{STORE}/{request['layer']}")
            return True
        connection = wire.receive_socket(owner)
    except wire.ClosedError:
        return False
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for mine in (owner, *own_sockets):
            mine.close()
        status = 1
        try:
            Warden(connection, STORE, request, privileges.root, privileges.user).serve()
            status = 0
        finally:
            os._exit(status)
    wardens.add(pid)
    connection.close()
    return True


def reap(wardens: set[int]) -> None:
    """Collect children that have ended, adopted ones too."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        wardens.discard(pid)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
