"""What an agent changed, as a patch, found without trusting anything that the agent could touch.

The agent's tree is only looked at: from a sandbox that starts from the pristine moment, with the
pristine git and a fresh shell. Both trees are written down as they are, byte by byte, whatever
attributes the agent gave to files, and the two are compared. Files that git ignores are left out,
as they are from a commit.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from sandboxgym.sandboxes.repo import pytest_settings
from sandboxgym.sandboxes.repo.backend import Backend, Checkpoint, Sandbox, SandboxError
from sandboxgym.sandboxes.repo.bases import WORKDIR
from sandboxgym.sandboxes.repo.patch import (
    GIT,
    TAKE_AS_IT_IS,
    Patch,
    PatchError,
    check_room,
    is_protected,
)

MAX_BYTES = 64 * 2**20
"""Of a patch."""

_VIEW = "agent-tree"
_AT = "/tmp/patch"
# The shell of the grader keeps these for the commands that follow.
_BEGIN = f"""\
set -e
tree="/{_VIEW}$pristine"
export GIT_INDEX_FILE={_AT}/index
git() {{ command {GIT} --work-tree="$work" "$@"; }}
mkdir {_AT}
{TAKE_AS_IT_IS}
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


class Pristine:
    """The moment before an agent began, which all that it may have changed is compared with.

    Args:
        backend: Whose moment it is.
        moment: The moment.
        workdir: Where the repository is.

    Attributes:
        moment: The moment.
    """

    def __init__(self, backend: Backend, moment: Checkpoint, workdir: str = WORKDIR) -> None:
        self.backend = backend
        self.moment = moment
        self.workdir = workdir
        self._written_down: Checkpoint | None = None

    def written_down(self) -> Checkpoint:
        """A moment in which git has the whole tree as it is; made once, when it is first asked for.

        Raises:
            NoRoomError: The disk is full.
            SandboxError: The tree could not be looked at, which is no fault of the agent's.
        """
        if self._written_down is None:
            grader = self.backend.fork(self.moment, fresh_shell=True)
            try:
                done = grader.run(f"pristine={shlex.quote(self.workdir)}\n{_BEGIN}")
                check_room(done)
                if done.returncode != 0:
                    words = done.output.strip()
                    raise SandboxError(f"git could not look at the pristine tree: {words}")
                self._written_down = grader.snapshot()
            finally:
                grader.close()
        return self._written_down


def capture(pristine: Pristine, agent: Checkpoint, protected: Iterable[str] = ()) -> Patch:
    """The difference between two moments of a repository.

    Args:
        pristine: The moment before the agent began.
        agent: The moment to look at.
        protected: Files of the repository that the patch may not change, beside `PROTECTED`:
            paths, or patterns in the manner of a shell's, in which `*` stands for a `/` too.

    Raises:
        PatchError: What the agent left is not a tree that can be compared.
        SandboxError: The pristine tree could not be looked at, which is no fault of the agent's.
    """
    protected, workdir = tuple(protected), pristine.workdir
    grader = pristine.backend.fork(pristine.written_down(), views={_VIEW: agent})
    try:
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
