"""The few Linux system calls that the overlay backend needs and Python's `os` does not have.

Numbers and structures are those of the kernel's own headers (include/uapi/linux/mount.h, sched.h,
prctl.h). System calls from number 424 on have the same number on every architecture.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Sequence

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
ALL_NAMESPACES = (
    CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET
)

_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT = 428, 429, 430, 431, 432
_OPENAT2 = 437
_MOUNT_SETATTR = 442
_FSOPEN_CLOEXEC = _FSMOUNT_CLOEXEC = 1
_FSCONFIG_SET_FLAG, _FSCONFIG_SET_STRING, _FSCONFIG_CMD_CREATE = 0, 1, 6
_MOVE_MOUNT_F_EMPTY_PATH, _MOVE_MOUNT_T_EMPTY_PATH = 0x04, 0x40
_OPEN_TREE_CLONE = 1
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_MOUNT_ATTR_RDONLY_NOSUID_NODEV = 1 | 2 | 4
_MOUNT_ATTRIBUTES = struct.Struct("=QQQQ")  # struct mount_attr

_BYTES_OF_A_NODE, _FEWEST_NODES = 4096, 100_000  # nodes take memory of the kernel's own

_MS_REC, _MS_PRIVATE = 1 << 14, 1 << 18
_MNT_DETACH = 2

_OPEN_HOW = struct.Struct("=QQQ")
_RESOLVE_NO_MAGICLINKS, _RESOLVE_IN_ROOT = 0x02, 0x10

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 22, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 36, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the namespaces that this process shares with others; see its manual page."""
    _checked(_libc.unshare(flags), f"unshare({flags:#x})")


def enter_namespaces(process: int, flags: int) -> None:
    """Join namespaces of a process, by a descriptor of it; see setns(2)."""
    _checked(_libc.setns(process, flags), f"setns({flags:#x})")


def make_mounts_private() -> None:
    """Keep what is mounted here from now on out of all other mount namespaces."""
    _checked(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "mount --make-rprivate /")


def mount_tmpfs(target: str, size: int) -> None:
    """Mount an empty file system in memory that takes at most `size` bytes."""
    nodes = max(size // _BYTES_OF_A_NODE, _FEWEST_NODES)
    options = f"size={size},nr_inodes={nodes},mode=711".encode()
    call = _libc.mount(b"tmpfs", os.fsencode(target), b"tmpfs", 0, options)
    _checked(call, f"mounting a tmpfs at {target}")


def mount_overlay(
    target: int, lower: Sequence[str], upper: str, work: str, *, privileged: bool
) -> None:
    """Mount `upper` over the directories `lower`, topmost first, at the directory `target`.

    By the interface that takes one layer a call: the old one ends at a page of options, which is
    some 45 layers. `index=off`, since an index loses the link between hard links of lower layers.
    Only a privileged mount can rename a directory of a lower layer (`redirect_dir`).
    """
    context = _syscall(_FSOPEN, b"overlay", _FSOPEN_CLOEXEC)
    try:
        for layer in lower:
            _fsconfig(context, _FSCONFIG_SET_STRING, "lowerdir+", layer)
        _fsconfig(context, _FSCONFIG_SET_STRING, "upperdir", upper)
        _fsconfig(context, _FSCONFIG_SET_STRING, "workdir", work)
        _fsconfig(context, _FSCONFIG_SET_STRING, "index", "off")
        if privileged:
            _fsconfig(context, _FSCONFIG_SET_STRING, "redirect_dir", "on")
            _fsconfig(context, _FSCONFIG_SET_STRING, "metacopy", "off")  # layers hold all content
        else:
            _fsconfig(context, _FSCONFIG_SET_FLAG, "userxattr", None)
        _fsconfig(context, _FSCONFIG_CMD_CREATE, None, None)
        mount = _syscall(_FSMOUNT, context, _FSMOUNT_CLOEXEC, 0)
    finally:
        os.close(context)
    attach(mount, target)


def clone_mount(source: int) -> int:
    """A mount of a directory, given by descriptor, that is nowhere yet."""
    flags = _OPEN_TREE_CLONE | _AT_EMPTY_PATH | os.O_CLOEXEC
    return _syscall(_OPEN_TREE, source, b"", flags)


def open_inside(root: int, path: str, flags: int, mode: int = 0) -> int:
    """Open a path as a process would whose root is a directory: no link leads out of it."""
    how = _OPEN_HOW.pack(flags | os.O_CLOEXEC, mode, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
    return _syscall(_OPENAT2, root, os.fsencode(path), how, len(how))


def bind_read_only(source: str, target: int) -> None:
    """Show a file or directory of the machine at another place, where nobody can write to it."""
    flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC
    mount = _syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(source), flags)
    try:
        attributes = _MOUNT_ATTRIBUTES.pack(_MOUNT_ATTR_RDONLY_NOSUID_NODEV, 0, 0, 0)
        at = _AT_EMPTY_PATH | _AT_RECURSIVE
        _syscall(_MOUNT_SETATTR, mount, b"", at, attributes, len(attributes))
    except OSError:
        os.close(mount)
        raise
    attach(mount, target)


def attach(mount: int, target: int) -> None:
    """Put a mount that is nowhere yet at a place, and forget its descriptor."""
    try:
        flags = _MOVE_MOUNT_F_EMPTY_PATH | _MOVE_MOUNT_T_EMPTY_PATH
        _syscall(_MOVE_MOUNT, mount, b"", target, b"", flags)
    finally:
        os.close(mount)


def unmount(target: str) -> None:
    """Take a mount away at once, also where something still uses it."""
    _checked(_libc.umount2(os.fsencode(target), _MNT_DETACH), f"umount {target}")


def become_subreaper() -> None:
    """Become the parent of orphaned descendants."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Be killed when the parent ends, for whatever reason."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def drop_privileges_for_good() -> None:
    """No capability now, in programs started later, or through set-user-id files."""
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break  # the kernel has no capability of this number, so none beyond it
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def set_seccomp_filter(program: bytes) -> None:
    """Install a filter of system calls; see seccomp(2), SECCOMP_SET_MODE_FILTER."""
    instructions = ctypes.create_string_buffer(program, len(program))
    header = _Program(len(program) // 8, ctypes.cast(instructions, ctypes.c_void_p))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(header))


class _Program(ctypes.Structure):
    """struct sock_fprog of linux/filter.h."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _fsconfig(context: int, command: int, key: str | None, value: str | None) -> None:
    encoded = [None if part is None else os.fsencode(part) for part in (key, value)]
    _syscall(_FSCONFIG, context, command, *encoded, 0)


def _prctl(option: int, value: object, third: object = 0) -> None:
    _checked(_libc.prctl(option, value, third, 0, 0), f"prctl({option})")


def _syscall(number: int, *arguments: object) -> int:
    return _checked(_libc.syscall(number, *arguments), f"system call {number} {arguments}")


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result
