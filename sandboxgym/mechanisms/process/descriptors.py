"""Open files of a worker, so that a fork has its own: a fork by itself shares their positions.

Files that are only read are opened anew at the same position. Files in the private folder are
opened in the copy of the folder; files without a name (deleted ones, and those in memory) that can
be written are copied. Anything else that is open leads outside, and is refused.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass

from sandboxgym.core.errors import UncapturedStateError
from sandboxgym.mechanisms.process.scratch import Scratch

_HARMLESS_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_ONCE = os.O_CREAT | os.O_EXCL | os.O_TRUNC | os.O_TMPFILE | os.O_NOFOLLOW  # not to be repeated
_WAY_OUT = "close it before snapshot(), or use mechanism='replay'"


@dataclass
class OpenFile:
    """One open file, and the descriptors that stand for it.

    Attributes:
        numbers: The descriptors; they share a position.
        flags: How it was opened.
        position: The position in it.
        inode: The file's device and inode number.
        path: Its name, as the kernel tells it.
        copied: Whether a fork needs a copy of its content.
    """

    numbers: list[int]
    flags: int
    position: int
    inode: tuple[int, int]
    path: str
    copied: bool


def look(scratch: Scratch, own: Collection[int]) -> list[OpenFile]:
    """Find the open files that a fork has to open anew.

    Args:
        scratch: The private folder.
        own: Descriptors that are not the environment's.

    Raises:
        UncapturedStateError: A descriptor leads to something that forks would share.
    """
    found: list[OpenFile] = []
    device = scratch.device()
    for number in sorted(int(name) for name in os.listdir("/proc/self/fd")):
        if number in own:
            continue
        try:
            status = os.fstat(number)
        except OSError:  # the descriptor by which the folder was listed
            continue
        path = os.readlink(f"/proc/self/fd/{number}")
        flags = fcntl.fcntl(number, fcntl.F_GETFL)
        if flags & os.O_PATH or (stat.S_ISCHR(status.st_mode) and path in _HARMLESS_DEVICES):
            continue  # there is no position to share
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            raise UncapturedStateError(
                f"the environment has {path} open (descriptor {number}), which forks would share: "
                + _WAY_OUT
            )
        inode = (status.st_dev, status.st_ino)
        in_scratch = scratch.private and status.st_dev == device
        nameless = status.st_nlink == 0
        if _writable(flags) and not in_scratch and not nameless:
            raise UncapturedStateError(
                f"the environment has {path} open for writing (descriptor {number}), and forks "
                "would write into the same file: let it write to the temporary folder "
                f"(tempfile.gettempdir(), here {scratch.path}), which is copied, or {_WAY_OUT}"
            )
        position = os.lseek(number, 0, os.SEEK_CUR)
        twin = next((f for f in found if f.inode == inode and _same(f.numbers[0], number)), None)
        if twin is not None:
            twin.numbers.append(number)
        else:
            found.append(OpenFile([number], flags, position, inode, path, nameless))
    written = {file.inode for file in found if _writable(file.flags)}
    for file in found:
        file.copied = file.copied and file.inode in written
    return found


def open_anew(files: list[OpenFile], scratch: Scratch) -> None:
    """In a fork, whose private folder is a copy by now: put a file of its own behind each number.

    Raises:
        UncapturedStateError: A file cannot be opened again.
    """
    copies: dict[tuple[int, int], int] = {}
    for file in files:
        source = f"/proc/self/fd/{file.numbers[0]}"
        if file.copied:
            if file.inode not in copies:
                copies[file.inode] = _copy(file.numbers[0])
            source = f"/proc/self/fd/{copies[file.inode]}"
        elif file.path.startswith(scratch.path + "/") and os.path.exists(file.path):
            source = file.path
        try:
            anew = os.open(source, file.flags & ~_ONCE)
        except OSError as error:
            raise UncapturedStateError(
                f"the environment has {file.path} open, and it cannot be opened once more for the "
                f"fork ({error.strerror}): {_WAY_OUT}"
            ) from error
        os.lseek(anew, file.position, os.SEEK_SET)
        for number in file.numbers:
            os.dup2(anew, number, inheritable=os.get_inheritable(number))
        os.close(anew)
    for number in copies.values():
        os.close(number)


def _copy(number: int) -> int:
    """A new file in memory with the content of an open one, whose position stays."""
    copy = os.memfd_create("copy")
    size, done = os.fstat(number).st_size, 0
    while done < size:
        done += os.sendfile(copy, number, done, size - done)
    return copy


def _same(left: int, right: int) -> bool:
    """Whether two descriptors of a file share their position, found out by moving one."""
    here, there = os.lseek(left, 0, os.SEEK_CUR), os.lseek(right, 0, os.SEEK_CUR)
    if here != there:
        return False
    try:
        os.lseek(left, here + 1, os.SEEK_SET)
        moved = os.lseek(right, 0, os.SEEK_CUR) != there
    finally:
        os.lseek(left, here, os.SEEK_SET)
    return moved


def _writable(flags: int) -> bool:
    return flags & os.O_ACCMODE != os.O_RDONLY
