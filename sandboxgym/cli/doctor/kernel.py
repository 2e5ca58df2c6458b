"""What the kernel allows: namespaces, overlay mounts, bubblewrap, the fork server, disk space."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from sandboxgym.cli.doctor.finding import Finding, System, tried

ENOUGH_SPACE = 2**30
IN_USER_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")
AS_ROOT = ("unshare", "--mount", "--propagation", "private")

# All of it inside a mount namespace of its own, on a tmpfs that goes with the namespace.
OVERLAY = """
mount -t tmpfs none "$1" && cd "$1" && mkdir lower upper work merged && echo below > lower/file &&
mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged &&
echo above > merged/file && cat lower/file upper/file
"""

CLOSED_DOORS = (
    ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)


def user_namespaces(system: System) -> Finding:
    """A user namespace with a mount namespace in it."""
    if shutil.which("unshare") is None:
        return Finding("userns", False, "the program unshare is not on PATH", _unshare(system))
    answer = tried([*IN_USER_NAMESPACE, "true"], 10)
    if answer.ok:
        return Finding("userns", True, "user and mount namespaces can be made")
    return Finding("userns", False, answer.why, _open_namespaces(system))


def overlay(system: System) -> Finding:
    """A writable overlay mount: as root, or in a user namespace."""
    if shutil.which("unshare") is None:
        return Finding("overlay", False, "the program unshare is not on PATH", _unshare(system))
    ways = {"in a user namespace": IN_USER_NAMESPACE}
    if system.root:
        ways = {"as root, in a mount namespace of its own": AS_ROOT, **ways}
    failures = []
    for way, command in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            answer = tried([*command, "sh", "-c", OVERLAY, "sh", folder], 20)
        if answer.out.split() == ["below", "above"]:
            return Finding("overlay", True, f"mounted {way}")
        failures.append(f"{way}: {answer.why}")
    fix = _open_namespaces(system)
    if not Path("/sys/module/overlay").exists() and shutil.which("modprobe"):
        fix = system.as_root("modprobe overlay")
    return Finding("overlay", False, "; ".join(failures), fix)


def bubblewrap(system: System) -> Finding:
    """A process in a bubblewrap sandbox without network."""
    install = system.install("bubblewrap", "install bubblewrap with your package manager")
    if shutil.which("bwrap") is None:
        return Finding("bubblewrap", False, "the program bwrap is not on PATH", install)
    command = "bwrap --ro-bind / / --dev /dev --proc /proc --unshare-all --die-with-parent true"
    answer = tried(command.split(), 10)
    if answer.ok:
        version = tried(["bwrap", "--version"], 10).out.strip()
        return Finding("bubblewrap", True, f"{version} runs a process")
    return Finding("bubblewrap", False, answer.why, _open_namespaces(system))


def fork_server(system: System) -> Finding:
    """What the mechanism `process` needs: Linux, `fork`, and `/proc` with the memory in it."""
    if sys.platform != "linux":
        why = f"the mechanism process needs Linux, this is {sys.platform}"
        return Finding("fork-server", False, why)
    try:
        memory = Path("/proc/self/smaps_rollup").read_text()
    except OSError as error:
        fix = system.as_root("mount -t proc proc /proc")
        return Finding("fork-server", False, f"/proc cannot be read: {error}", fix)
    child = os.fork()
    if child == 0:
        os._exit(7)
    _, status = os.waitpid(child, 0)
    usable = os.waitstatus_to_exitcode(status) == 7 and "Pss:" in memory
    return Finding("fork-server", usable, "fork works, /proc tells the memory of processes")


def disk(system: System) -> Finding:
    """Space for temporary files."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    what = f"{free / 2**30:.1f} GiB free in {folder}"
    if free >= ENOUGH_SPACE:
        with tempfile.TemporaryFile() as file:
            file.write(b"x")
        return Finding("disk", True, what)
    return Finding("disk", False, f"only {what}", "export TMPDIR=/a/folder/with/more/space")


def _unshare(system: System) -> str:
    return system.install("util-linux", "install util-linux (Linux only)")


def _open_namespaces(system: System) -> str:
    """What opens the door that is closed; of a container that is an option of its start."""
    for name, closed, setting in CLOSED_DOORS:
        path = Path("/proc/sys", name)
        if path.exists() and path.read_text().strip() == closed:
            return system.as_root(f"sysctl -w {setting}")
    return (
        "if this is a container, start it with: docker run --cap-add SYS_ADMIN --security-opt "
        "seccomp=unconfined --security-opt apparmor=unconfined ..."
    )
