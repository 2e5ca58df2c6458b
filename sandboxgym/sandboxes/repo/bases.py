"""Bases: trees that sandboxes start from, built once and then never changed.

A base for a folder or a git repository is a small root file system of its own: the tree, an `/etc`
that names the agent, empty `/tmp` and `/home/agent`. The programs come from the machine, shown
read-only: `/usr`, and the Python that a task needs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from sandboxgym.core.errors import DataNotFoundError, SandboxGymError
from sandboxgym.sandboxes.repo.backend import DEFAULT_ENVIRONMENT, Base

WORKDIR = "/repo"
SANDBOX_USER = 65533
"""Where we are root, the user and group outside of the sandbox who own its files."""

_ETC = {
    "passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000::/home/agent:/bin/bash\n",
    "group": "root:x:0:\nagent:x:1000:\n",
    "hosts": "127.0.0.1 localhost sandbox\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "gitconfig": "[user]\n\tname = agent\n\temail = agent@sandbox\n[safe]\n\tdirectory = *\n"
    "[advice]\n\tdetachedHead = false\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n",
}
_SHARED_ETC = ("alternatives", "ld.so.cache", "ssl/certs", "mime.types", "python3", "python3.11")


_EPOCH = int(DEFAULT_ENVIRONMENT["SOURCE_DATE_EPOCH"])
_FORMAT = 3  # of what is in the cache


class RepositoryError(SandboxGymError, RuntimeError):
    """A repository, or a commit of it, cannot be made into a base."""


def default_cache() -> Path:
    """Where bases are kept: $SANDBOXGYM_CACHE, or the user's cache folder."""
    given = os.environ.get("SANDBOXGYM_CACHE")
    if given:
        return Path(given) / "bases"
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "sandboxgym" / "bases"


def base_of_folder(
    folder: str | os.PathLike[str],
    *,
    toolchains: Sequence[str | os.PathLike[str]] = (),
    environment: Mapping[str, str] | None = None,
    cache: Path | None = None,
) -> Base:
    """A base with a copy of a folder at /repo, committed as the only commit of a repository.

    Args:
        folder: What to copy. A folder that looks the same later (names, sizes, times) is not
            copied again.
        toolchains: Folders of the machine that commands need beside /usr, shown where they are.
        environment: Variables of a new shell, beside the usual ones.
        cache: Where to build it; None takes `default_cache()`.

    Raises:
        DataNotFoundError: There is no such folder, or not all of it can be read.
    """
    source = _folder(folder)
    try:
        looks = _looks(source)
    except OSError as error:  # its own words would have the whole path, however long
        raise DataNotFoundError(f"not all of {source} can be read: {error.strerror}") from error
    skeleton = Skeleton(toolchains, environment, cache)
    return skeleton.base(f"folder {source} {looks}", lambda tree: _copy(source, tree))


def base_of_commit(
    repository: str | os.PathLike[str],
    commit: str = "HEAD",
    *,
    change: str = "",
    toolchains: Sequence[str | os.PathLike[str]] = (),
    environment: Mapping[str, str] | None = None,
    cache: Path | None = None,
) -> Base:
    """A base with one commit of a git repository at /repo, and none of its history.

    The tree is committed anew as the only commit: an agent can read neither what came later nor
    where the repository came from.

    Args:
        repository: A git repository of the machine, bare or not.
        commit: Any name that git has for a commit.
        change: A patch as `git apply` takes it: the tree is that of the commit with the patch.
        toolchains: As for `base_of_folder`.
        environment: As for `base_of_folder`.
        cache: As for `base_of_folder`.

    Raises:
        DataNotFoundError: There is no such folder.
        RepositoryError: It has no such commit, the patch does not fit, or git failed.
    """
    source = _folder(repository)
    try:
        sha = git(source, "rev-parse", "--verify", f"{commit}^{{commit}}").strip()
    except RepositoryError as error:
        raise RepositoryError(
            f"there is no commit {commit!r} in {source}: name one that is there, or fetch the rest "
            "of a shallow clone; Repo-v0 takes a folder as it lies there by commit=None "
            f"({error})"
        ) from error
    skeleton = Skeleton(toolchains, environment, cache)
    what = f"commit {sha}"
    if change:
        what += f" with {hashlib.blake2b(change.encode(), digest_size=16).hexdigest()}"
    return skeleton.base(what, lambda tree: check_out_orphan(source, sha, tree, change))


class Skeleton:
    """The small root file system around a tree; arguments as for `base_of_folder`."""

    def __init__(
        self,
        toolchains: Sequence[str | os.PathLike[str]],
        environment: Mapping[str, str] | None,
        cache: Path | None,
    ) -> None:
        shown = ["/usr", *(f"/etc/{name}" for name in _SHARED_ETC)]
        shown += [os.fspath(Path(path).resolve()) for path in toolchains]
        self.binds = tuple((path, path) for path in shown if Path(path).exists())
        self.environment = {**DEFAULT_ENVIRONMENT, **(environment or {})}
        self.cache = cache or default_cache()

    def base(self, what: str, fill: Callable[[Path], None]) -> Base:
        """The base whose tree `fill` makes, built unless the cache has it under this name."""
        key = f"{_FORMAT} {what} {self.binds} {os.geteuid()}"
        target = self.cache / hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        if not target.is_dir():
            self.cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.cache, prefix=".new-") as building:
                new = Path(building, "new")
                root = new / "root"
                self._lay_out(root)
                fill(root / WORKDIR[1:])
                (new / "name").write_text(content_name(root / WORKDIR[1:]))
                _give_to_sandbox(root)
                for folder in (new, root):
                    folder.chmod(0o755)
                with contextlib.suppress(FileExistsError):  # another process was faster
                    _rename_new(new, target)
        name = (target / "name").read_text()
        return Base(target / "root", self.binds, WORKDIR, self.environment, name)

    def _lay_out(self, root: Path) -> None:
        for folder in ("etc", "home/agent", "proc", "dev/shm", "run", "var/tmp", "tmp", "root"):
            (root / folder).mkdir(parents=True)
        for folder in ("tmp", "var/tmp", "dev/shm"):
            (root / folder).chmod(0o1777)
        for name, text in _ETC.items():
            (root / "etc" / name).write_text(text)
        for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
            link = Path("/", name)
            if link.is_symlink():
                (root / name).symlink_to(link.readlink())
        for source, _ in self.binds:
            place = root / source[1:]
            if Path(source).is_dir():
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch()


def _folder(path: str | os.PathLike[str]) -> Path:
    folder = Path(path).resolve()
    if not folder.is_dir():
        raise DataNotFoundError(f"{folder} is no folder, so it cannot be the tree of a sandbox")
    return folder


def _copy(source: Path, tree: Path) -> None:
    tree.mkdir()
    copying = ["cp", "-a", "--reflink=auto", f"{source}/.", f"{tree}/"]
    done = subprocess.run(copying, capture_output=True, check=False)
    if done.returncode != 0:
        words = os.fsdecode(done.stderr).strip()
        raise DataNotFoundError(f"not all of {source} can be copied: {words[:500]}")
    for path in [path for path in _entries(tree) if path.name == ".git"]:
        with _writable(path.parent):
            _remove_history(path)
    with _writable(tree):
        commit_anew(tree)


def _remove_history(git_folder: Path) -> None:
    """Make a repository a plain folder, nested ones too: git would not look at files in those."""
    if git_folder.is_dir() and not git_folder.is_symlink():
        shutil.rmtree(git_folder)
    else:
        git_folder.unlink()


@contextlib.contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Let us change a folder that was copied with its mode."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    folder.chmod(mode | stat.S_IRWXU)
    try:
        yield
    finally:
        folder.chmod(mode)


def check_out_orphan(source: Path, sha: str, tree: Path, change: str = "") -> None:
    """Write the files of a commit, change them, and commit them anew, with nothing before."""
    tree.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        # The work tree is named because a bare repository has none.
        index = {"GIT_INDEX_FILE": f"{scratch}/index", "GIT_WORK_TREE": str(tree)}
        git(source, "read-tree", sha, extra=index)
        git(source, "checkout-index", "--all", f"--prefix={tree}/", extra=index)
    settle(tree, change)


def settle(tree: Path, change: str = "") -> None:
    """Change new files by a patch, give all the same time, and make them the only commit."""
    if change:
        # In a repository further up, git would look for the files of the patch there.
        alone = {"GIT_CEILING_DIRECTORIES": str(tree.parent)}
        git(tree, "apply", "--whitespace=nowarn", "-", extra=alone, stdin=change)
    for path in _entries(tree):
        os.utime(path, (_EPOCH, _EPOCH), follow_symlinks=False)
    commit_anew(tree, "--force")


def commit_anew(tree: Path, *options: str) -> None:
    """Make a tree the only commit of a new repository; options are for `git add`."""
    git(tree, "init", "--quiet", "--initial-branch=main")
    shutil.rmtree(tree / ".git/hooks", ignore_errors=True)
    git(tree, "add", "--all", *options)
    git(tree, "commit", "--quiet", "--allow-empty", "--no-verify", "-m", "base")


def commit_tracked_anew(tree: Path) -> None:
    """Make the files that a repository tracks the only commit of a new one in its place.

    Of the old one only the list of files is read: what it is told to run has no effect.

    Raises:
        RepositoryError: There is no repository.
    """
    history = tree / ".git"
    index = history / "index"
    if history.is_symlink() or index.is_symlink() or not index.is_file():
        raise RepositoryError(f"there is no repository in {tree}, so it cannot be committed anew")
    with tempfile.TemporaryDirectory() as scratch:
        git(Path(scratch), "init", "--quiet")
        shutil.copyfile(index, Path(scratch, ".git", "index"))
        tracked = git(Path(scratch), "ls-files", "-z").split("\0")
    there = [name for name in tracked if name and os.path.lexists(tree / name)]
    shutil.rmtree(history)
    git(tree, "init", "--quiet", "--initial-branch=main")
    shutil.rmtree(history / "hooks", ignore_errors=True)
    names = ("--pathspec-from-file=-", "--pathspec-file-nul")
    git(tree, "--literal-pathspecs", "add", "--force", *names, stdin="\0".join(there))
    git(tree, "commit", "--quiet", "--allow-empty", "--no-verify", "-m", "base")
    _give_to_sandbox(history)


def git(
    folder: Path,
    *arguments: str,
    extra: Mapping[str, str] | None = None,
    stdin: str = "",
) -> str:
    """Run git without the configuration of machine or user, and with fixed names and dates.

    What it prints is given back with the ends of lines that it has.
    """
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        **{f"GIT_{who}_NAME": "base" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "base@sandbox" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_DATE": f"{_EPOCH} +0000" for who in ("AUTHOR", "COMMITTER")},
        **(extra or {}),
    }
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command,
            env=environment,
            input=stdin.encode("utf-8", "surrogateescape"),
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise RepositoryError("git is not installed: install it to use repositories") from error
    said, failed = (out.decode("utf-8", "surrogateescape") for out in (done.stdout, done.stderr))
    if done.returncode != 0:
        raise RepositoryError(
            f"git {arguments[0]} failed in {folder}: {failed.strip() or said.strip()}"
        )
    return said


def _give_to_sandbox(root: Path) -> None:
    """Make the sandbox's user the owner of a tree, where we may."""
    if os.geteuid() != 0:
        return
    for path in (root, *_entries(root)):
        os.chown(path, SANDBOX_USER, SANDBOX_USER, follow_symlinks=False)


def _rename_new(source: Path, target: Path) -> None:
    """Rename a folder to a name that must be free."""
    try:
        source.rename(target)
    except OSError as error:  # "directory not empty", by the other name of that error
        raise FileExistsError(str(target)) from error


def _looks(folder: Path) -> str:
    """A hash of names, kinds, sizes and times in a folder."""
    seen = hashlib.blake2b(digest_size=16)
    for path in _entries(folder):
        status = path.lstat()
        line = (
            f"{path.relative_to(folder)}\0{status.st_mode}\0{status.st_size}\0{status.st_mtime_ns}"
        )
        seen.update(line.encode("utf-8", "surrogateescape"))
    return seen.hexdigest()


def content_name(tree: Path) -> str:
    """A hash of what is in a tree beside its history, the same on every machine."""
    seen = hashlib.blake2b(digest_size=20)
    for path in _entries(tree):
        name = path.relative_to(tree)
        if name.parts[0] == ".git":
            continue
        status = path.lstat()
        content = b""
        if path.is_symlink():
            content = os.fsencode(path.readlink())
        elif path.is_file():
            content = _hash_of_file(path)
        kind = oct(stat.S_IFMT(status.st_mode) | (status.st_mode & stat.S_IXUSR))
        for part in (os.fsencode(name), kind.encode(), content):
            seen.update(len(part).to_bytes(8, "big") + part)
    return seen.hexdigest()


def _hash_of_file(path: Path) -> bytes:
    seen = hashlib.blake2b(digest_size=20)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            seen.update(block)
    return seen.digest()


def _entries(folder: Path) -> Iterator[Path]:
    """All that is in a folder, each folder before its content, in the order of names."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted([*folders, *files]):
            yield Path(parent, name)
