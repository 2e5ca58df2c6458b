"""The private folder for temporary files: one path, with a content of its own in every process.

A worker sees a small file system in memory (tmpfs) there that no other process sees, by a mount
namespace of its own. A fork copies the content. The kernel frees it with the last process that
sees it, however that process ends, so there is nothing to clean up.

Namespaces need root or user namespaces. Where the machine has neither, the folder is a plain one
that all processes share, and an environment that keeps files in it cannot be forked.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sandboxgym.core.errors import UncapturedStateError
from sandboxgym.mechanisms.process import linux


@dataclass(frozen=True)
class Scratch:
    """The folder as its process sees it.

    Attributes:
        path: Where it is.
        namespace: A descriptor of the mount namespace in which nothing is mounted there, or None
            where the machine does not allow namespaces.
        stays: Whether the folder is not removed in the end, but used again.
    """

    path: str
    namespace: int | None
    stays: bool

    @classmethod
    def find(cls) -> Scratch:
        """Choose the folder, and give this process a namespace where that is allowed.

        The mount point is the same for all, and stays: each process sees what is mounted there for
        it, paths that an environment shows are the same in each run, and however many processes are
        killed, they leave nothing behind.
        """
        shared = _shared_mount_point()
        if shared is not None and (namespace := _enter_namespace(shared)) is not None:
            return cls(shared, namespace, stays=True)
        own = os.path.realpath(tempfile.mkdtemp(prefix="sandboxgym-"))
        return cls(own, _enter_namespace(own), stays=False)

    def remove(self) -> None:
        """Remove the folder, when no process uses it any more."""
        if not self.stays:
            shutil.rmtree(self.path)

    @property
    def private(self) -> bool:
        """Whether the content is this process's own."""
        return self.namespace is not None

    def prepare(self) -> None:
        """Make it the folder for temporary files of this process and of its forks."""
        if self.private:
            working_folder = os.getcwd()
            self._mount()
            os.chdir(working_folder)
        os.environ["TMPDIR"] = self.path
        tempfile.tempdir = None  # read TMPDIR again

    def check(self) -> None:
        """Refuse to fork where the forks would share files."""
        if not self.private and os.listdir(self.path):
            raise UncapturedStateError(
                f"the environment keeps temporary files ({_some(os.listdir(self.path))}), and "
                "this machine lets no process have a folder of its own (neither root nor user "
                "namespaces): allow user namespaces, or use mechanism='replay'"
            )

    def copy(self) -> None:
        """Replace the content, which a fork has from its parent, by a copy."""
        if not self.private:
            return
        working_folder = os.getcwd()
        original = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        self._mount()
        if os.listdir(original):
            copying = _Copy(_newest_first(self.path))
            copying.folder(f"/proc/self/fd/{original}", self.path, self.path)
        os.close(original)
        os.chdir(working_folder)

    def device(self) -> int:
        """The number of the file system that the folder is on."""
        return os.stat(self.path).st_dev

    def _mount(self) -> None:
        """Have an empty file system there that only this process sees.

        It comes back to the first namespace for it: unmounting the parent's takes the kernel long.
        """
        assert self.namespace is not None
        linux.enter_mounts(self.namespace)  # which changes the working folder
        linux.unshare(linux.CLONE_NEWNS)
        linux.mount("tmpfs", self.path, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=700")


def _shared_mount_point() -> str | None:
    """An empty folder of this user's, or None where there is no home to have it in."""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").resolve()
        folder = cache / "sandboxgym" / "scratch"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return str(folder)


def _enter_namespace(path: str) -> int | None:
    """Enter a mount namespace to which all descendants can come back; a descriptor of it.

    Tried in a child first, so that nothing has changed where it is not allowed: then it is None.
    """
    for enter in (_as_root, _as_user):
        if _works_in_a_child(partial(_try, enter, path)):
            return enter()
    return None


def _as_root() -> int:
    linux.unshare(linux.CLONE_NEWNS)
    return _namespace()


def _as_user() -> int:
    uid, gid = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    return _namespace()


def _namespace() -> int:
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE, None)  # not seen outside
    return os.open("/proc/self/ns/mnt", os.O_RDONLY)


def _try(enter: Callable[[], int], path: str) -> None:
    Scratch(path, enter(), stays=True).prepare()


def _works_in_a_child(action: Callable[[], None]) -> bool:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            action()
            code = 0
        except OSError:
            pass  # what the exit code says
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


@dataclass
class _Copy:
    """The copying of a folder's content; `os.listdir` and the metadata stay as they were."""

    newest_first: bool
    links: dict[int, str] = field(default_factory=dict)  # inode -> where its first name went

    def folder(self, source: str, target: str, shown: str) -> None:
        names = os.listdir(source)
        for name in reversed(names) if self.newest_first else names:
            self.entry(f"{source}/{name}", f"{target}/{name}", f"{shown}/{name}")
        shutil.copystat(source, target)

    def entry(self, source: str, target: str, shown: str) -> None:
        found = os.lstat(source)
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(target)
            self.folder(source, target, shown)
        elif found.st_ino in self.links:
            os.link(self.links[found.st_ino], target, follow_symlinks=False)
        elif stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
            self.links[found.st_ino] = target
            shutil.copyfile(source, target, follow_symlinks=False)
            shutil.copystat(source, target, follow_symlinks=False)
        else:
            raise UncapturedStateError(
                f"{shown} is neither a file nor a folder nor a link, and is not copied: remove it "
                "before snapshot(), or use mechanism='replay'"
            )


def _newest_first(empty: str) -> bool:
    """Whether this kernel lists the newest file of a tmpfs first; most do."""
    for name in ("a", "b"):
        os.close(os.open(f"{empty}/{name}", os.O_CREAT | os.O_WRONLY))
    newest_first = os.listdir(empty)[0] == "b"
    for name in ("a", "b"):
        os.unlink(f"{empty}/{name}")
    return newest_first


def _some(names: list[str]) -> str:
    return ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "")
