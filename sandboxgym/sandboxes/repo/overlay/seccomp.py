"""The filter of system calls for what runs inside a sandbox.

Commands in a sandbox already have no capabilities. The filter takes away what an unprivileged
process could still use to reach code of the kernel that ordinary programs never need: new
namespaces, tracing, key rings, BPF, the asynchronous interface, and the terminal's input queue.
The program is classic BPF over `struct seccomp_data` (include/uapi/linux/seccomp.h, filter.h).
"""

from __future__ import annotations

import errno
import platform
import struct

_LOAD, _EQUALS, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_AT_NUMBER, _AT_ARCHITECTURE, _AT_FIRST_ARGUMENT, _AT_SECOND_ARGUMENT = 0, 4, 16, 24
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_CLONE_NEW_ANY = 0x7E020000  # every CLONE_NEW* flag that clone takes
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_X32_BIT = 0x40000000

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_DENIED = {  # by architecture: unistd.h's numbers
    "x86_64": {
        "ptrace": 101, "personality": 135, "pivot_root": 155, "acct": 163, "mount": 165,
        "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "init_module": 175,
        "delete_module": 176, "quotactl": 179, "lookup_dcookie": 212, "kexec_load": 246,
        "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272,
        "perf_event_open": 298, "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "finit_module": 313, "kexec_file_load": 320, "bpf": 321,
        "userfaultfd": 323,
    },
    "aarch64": {
        "umount2": 39, "mount": 40, "pivot_root": 41, "acct": 89, "personality": 92,
        "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "ptrace": 117,
        "reboot": 142, "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224,
        "swapoff": 225, "perf_event_open": 241, "open_by_handle_at": 265, "setns": 268,
        "process_vm_readv": 270, "process_vm_writev": 271, "finit_module": 273, "bpf": 280,
        "userfaultfd": 282, "kexec_file_load": 294, "quotactl": 60, "lookup_dcookie": 18,
    },
}  # fmt: skip
_DENIED_EVERYWHERE = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
}  # fmt: skip
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435  # its flags are in memory, where a filter cannot look: libc falls back to clone
_IOCTL = {"x86_64": 16, "aarch64": 29}


def filter_program(machine: str | None = None) -> bytes:
    """The filter for this machine, or one named as `platform.machine()` names it.

    Raises:
        NotImplementedError: The system calls of the machine are not known here.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        known = " and ".join(_ARCHITECTURES)
        raise NotImplementedError(f"the filter of system calls is for {known}, not for {machine}")
    program = [
        _step(_LOAD, _AT_ARCHITECTURE),
        _step(_EQUALS, _ARCHITECTURES[machine], 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _AT_NUMBER),
    ]
    if machine == "x86_64":
        program += [_step(_ANY_BIT, _X32_BIT, 0, 1), _step(_RETURN, _ERRNO | errno.ENOSYS)]
    for number in (*_DENIED[machine].values(), *_DENIED_EVERYWHERE.values()):
        program += [_step(_EQUALS, number, 0, 1), _step(_RETURN, _ERRNO | errno.EPERM)]
    program += [_step(_EQUALS, _CLONE3, 0, 1), _step(_RETURN, _ERRNO | errno.ENOSYS)]
    program += [
        _step(_EQUALS, _CLONE[machine], 0, 3),
        _step(_LOAD, _AT_FIRST_ARGUMENT),
        _step(_ANY_BIT, _CLONE_NEW_ANY, 0, 1),
        _step(_RETURN, _ERRNO | errno.EPERM),
        _step(_LOAD, _AT_NUMBER),
        _step(_EQUALS, _IOCTL[machine], 0, 4),
        _step(_LOAD, _AT_SECOND_ARGUMENT),
        _step(_EQUALS, _TIOCSTI, 1, 0),
        _step(_EQUALS, _TIOCLINUX, 0, 1),
        _step(_RETURN, _ERRNO | errno.EPERM),
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(program)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One struct sock_filter."""
    return struct.pack("=HBBI", code, if_true, if_false, value)
