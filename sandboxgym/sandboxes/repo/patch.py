"""What an agent changed, as a patch, found without trusting anything that the agent could touch.

The agent's tree is only looked at: from a sandbox that starts from the pristine moment, with the
pristine git and a fresh shell. Both trees are written down as they are, byte by byte, whatever
attributes the agent gave to files, and the two are compared. Files that git ignores are left out,
as they are from a commit.
"""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from sandboxgym.core.errors import SandboxGymError
from sandboxgym.sandboxes.repo import pytest_settings
from sandboxgym.sandboxes.repo.backend import (
    Backend,
    Checkpoint,
    CommandResult,
    Sandbox,
    SandboxError,
)
from sandboxgym.sandboxes.repo.bases import WORKDIR

PROTECTED = (
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "sitecustomize*",
    "usercustomize*",
    "*.pth",
    "*.egg-info",
    "*.dist-info",
    "__pycache__",
    "*.py[co]",  # which Python may run instead of the source beside it
)
"""Names of files and folders that decide how tests are run: a graded patch does not have them."""

MAX_BYTES = 64 * 2**20
"""Of a patch."""

_VIEW = "agent-tree"
_AT = "/tmp/patch"
# What is in the git directory outranks every .gitattributes: files are taken as they are.
_RAW = "* -text -ident !eol !filter !working-tree-encoding"
_GIT = (
    "git -c core.hooksPath=/dev/null -c core.fsmonitor= -c core.untrackedCache=false "
    "-c core.excludesFile=/dev/null -c core.attributesFile=/dev/null -c core.quotePath=true "
    "-c core.protectNTFS=false -c core.protectHFS=false -c core.fileMode=true "
    '--git-dir="$pristine/.git"'
)
_TAKE_AS_IT_IS = f"""\
mkdir -p "$pristine/.git/info" && echo '{_RAW}' > "$pristine/.git/info/attributes"
"""
# The shell of the grader keeps these for the commands that follow.
_BEGIN = f"""\
set -e
tree="/{_VIEW}$pristine"
export GIT_INDEX_FILE={_AT}/index
git() {{ command {_GIT} --work-tree="$work" "$@"; }}
mkdir {_AT}
{_TAKE_AS_IT_IS}
work="$pristine"
cd "$work"
git read-tree HEAD
git add --all -- .
git write-tree > {_AT}/before
"""
# What cannot be read is made readable, what git does not know is taken away, and nested
# repositories become plain folders: of those git would take down only a commit's name.
_LOOK_AT_AGENT = """\
[ -d "$tree" ] && [ ! -L "$tree" ] || { echo "there is no folder $pristine any more"; exit 1; }
find "$tree" -type d ! -perm -700 -exec chmod u+rwx {} \\;
find "$tree" -type f ! -perm -400 -exec chmod u+r {} +
find "$tree" ! -type f ! -type d ! -type l -exec rm -f {} +
find "$tree" -path "$tree/.git" -prune -o -iname .git -prune -exec rm -rf -- {} +
work="$tree"
cd "$work"
git add --all -- .
"""
_LIST = f"""\
git diff --cached --name-only --no-renames --ignore-submodules=none -z \
  $(cat {_AT}/before) > {_AT}/changed
"""
_LEAVE_OUT = f"""\
cat > {_AT}/left-out
git --literal-pathspecs reset --quiet $(cat {_AT}/before) \
  --pathspec-from-file={_AT}/left-out --pathspec-file-nul
"""
_EXCHANGE = """\
blob=$(git hash-object -w --no-filters --stdin)
mode=$(git --literal-pathspecs ls-files --stage -- "$name" | cut -d' ' -f1)
git update-index --cacheinfo "$mode,$blob,$name"
"""
_WRITE = f"""\
git diff --cached --binary --full-index --no-renames --no-ext-diff --no-textconv \
  --no-color --src-prefix=a/ --dst-prefix=b/ --ignore-submodules=none --unified=3 \
  --diff-algorithm=myers $(cat {_AT}/before) > {_AT}/patch
"""
_APPLY = f"""\
set -e
{_TAKE_AS_IT_IS}
cd "$pristine"
{_GIT} --work-tree="$pristine" apply --whitespace=nowarn -
"""


class PatchError(SandboxGymError, RuntimeError):
    """What an agent left cannot be made into a patch, or a patch cannot be applied."""


class NoRoomError(PatchError):
    """The disk of the sandboxes is full."""

    def __init__(self) -> None:
        super().__init__("the disk is full, so that nothing can be graded")


@dataclass(frozen=True)
class Patch:
    """What an agent changed.

    Attributes:
        text: A patch as `git apply` takes it; binary files and modes are in it.
        files: The files that it changes.
        left_out: Files of which a change is left out, as they are protected.
    """

    text: bytes
    files: tuple[str, ...]
    left_out: tuple[str, ...]


def capture(
    backend: Backend,
    pristine: Checkpoint,
    agent: Checkpoint,
    protected: Iterable[str] = (),
    workdir: str = WORKDIR,
) -> Patch:
    """The difference between two moments of a repository.

    Args:
        backend: Of both moments.
        pristine: The moment before the agent began.
        agent: The moment to look at.
        protected: Files of the repository that the patch may not change, beside `PROTECTED`:
            paths, or patterns in the manner of a shell's, in which `*` stands for a `/` too.
        workdir: Where the repository is.

    Raises:
        PatchError: What the agent left is not a tree that can be compared.
        SandboxError: The pristine tree could not be looked at, which is no fault of the agent's.
    """
    protected = tuple(protected)
    grader = backend.fork(pristine, views={_VIEW: agent}, fresh_shell=True)
    try:
        done = grader.run(f"pristine={shlex.quote(workdir)}\n{_BEGIN}")
        check_room(done)
        if done.returncode != 0:
            raise SandboxError(f"git could not look at the pristine tree: {done.output.strip()}")
        _do(grader, _LOOK_AT_AGENT)
        changed = _changed(grader)
        left_out = [name for name in changed if is_protected(name, protected)]
        shared = [n for n in changed if n not in left_out and pytest_settings.is_shared(n)]
        left_out += [name for name in shared if not _keep_settings(grader, workdir, name)]
        if left_out:
            listed = b"".join(name.encode("utf-8", "surrogateescape") + b"\0" for name in left_out)
            _do(grader, _LEAVE_OUT, listed)
        files = tuple(_changed(grader))
        _do(grader, _WRITE)
        text = _read(grader, f"{_AT}/patch")
    finally:
        grader.close()
    return Patch(text, files, tuple(sorted(left_out)))


def apply(sandbox: Sandbox, patch: bytes, workdir: str = WORKDIR) -> None:
    """Apply a patch to the repository of a sandbox.

    Raises:
        PatchError: It does not fit.
    """
    if not patch.strip():
        return
    done = sandbox.run(f"(pristine={shlex.quote(workdir)}\n{_APPLY})", stdin=patch)
    check_room(done)
    if done.returncode != 0:
        raise PatchError(f"the patch does not apply: {done.output.strip()}")


def check_room(done: CommandResult) -> None:
    """See that a command of a grader had room for what it wrote.

    The agent's files take it: had this no consequence, an agent could fill the disk to escape.

    Raises:
        NoRoomError: It had none.
    """
    if "disk" in done.limits_reached:
        raise NoRoomError


def is_protected(name: str, more: Iterable[str] = ()) -> bool:
    """Whether a patch may not change a file; in any folder, in any case of letters."""
    parts = [part.lower() for part in PurePosixPath(name).parts]
    if any(fnmatch.fnmatchcase(part, pattern) for part in parts for pattern in PROTECTED):
        return True
    return any(
        name == pattern or name.startswith(f"{pattern}/") or fnmatch.fnmatchcase(name, pattern)
        for pattern in more
    )


def _keep_settings(grader: Sandbox, workdir: str, name: str) -> bool:
    """Keep what a file says to pytest as it was; False where that takes leaving the change out."""
    theirs = f"/{_VIEW}{workdir}/{name}"
    before = _text(grader, f"{workdir}/{name}") or ""
    after = _text(grader, theirs)
    if after is None:  # it was deleted, or is no ordinary file any more
        gone = grader.run(f"([ ! -L {shlex.quote(theirs)} ])").returncode == 0
        return gone and pytest_settings.kept(name, before, "") == ""
    text = pytest_settings.kept(name, before, after)
    if text is None:
        return False
    if text != after:
        content = text.encode("utf-8", "surrogateescape")
        quoted = shlex.quote(name)
        _do(grader, f"name={quoted}\n{_EXCHANGE}", content)
    return True


def _text(grader: Sandbox, path: str) -> str | None:
    """The text of a file itself, or None where it is not there, or is a link or something else."""
    quoted = shlex.quote(path)
    if grader.run(f"([ -f {quoted} ] && [ ! -L {quoted} ])").returncode != 0:
        return None
    return grader.read_file(path).decode("utf-8", "surrogateescape")


def _changed(grader: Sandbox) -> list[str]:
    _do(grader, _LIST)
    names = _read(grader, f"{_AT}/changed").split(b"\0")
    return [name.decode("utf-8", "surrogateescape") for name in names if name]


def _read(grader: Sandbox, path: str) -> bytes:
    try:
        return grader.read_file(path, MAX_BYTES)
    except SandboxError as error:
        raise PatchError(f"the changes are too large for a patch: {error}") from error


def _do(grader: Sandbox, command: str, stdin: bytes = b"") -> None:
    done = grader.run(command, stdin=stdin)
    check_room(done)
    if done.timed_out:
        raise PatchError("the changes cannot be made into a patch: it takes git too long")
    if done.returncode != 0:
        words = done.output[-500:].strip()
        raise PatchError(f"the changes cannot be made into a patch: {words}")
