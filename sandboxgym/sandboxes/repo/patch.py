"""What an agent changed, as a patch, found without trusting anything that the agent could touch.

The agent's tree is only looked at: from a sandbox that starts from the pristine moment, with the
pristine git, the pristine history and a fresh shell. Files that git ignores are left out, as they
are from a commit.
"""

from __future__ import annotations

import base64
import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from sandboxgym.core.errors import SandboxGymError
from sandboxgym.sandboxes.repo.backend import Backend, Checkpoint, Sandbox
from sandboxgym.sandboxes.repo.bases import WORKDIR

PROTECTED = (
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "sitecustomize.py",
    "usercustomize.py",
    "*.pth",
)
"""Names of files that decide how tests are run: the patch that is graded does not have them."""

MAX_CHARACTERS = 128 * 2**20
_VIEW = "agent-tree"
_GIT = (
    "git -c core.hooksPath=/dev/null -c core.fsmonitor= -c core.excludesFile=/dev/null "
    f"-c core.attributesFile=/dev/null --git-dir={WORKDIR}/.git --work-tree=/{_VIEW}{WORKDIR}"
)
# Nested repositories become plain folders: of those git would take down only a commit's name.
_COLLECT = f"""\
set -e
find /{_VIEW}{WORKDIR} -mindepth 2 -name .git -prune -exec rm -rf -- {{}} +
cd /{_VIEW}{WORKDIR}
{_GIT} add --all -- .
{_GIT} diff --cached --name-only --no-renames -z HEAD | base64 --wrap=0
"""
_WRITE = f"""\
set -e
cd /{_VIEW}{WORKDIR}
cat > /tmp/left-out
if [ -s /tmp/left-out ]; then
  {_GIT} --literal-pathspecs reset --quiet --pathspec-from-file=/tmp/left-out --pathspec-file-nul
fi
{_GIT} diff --cached --binary --full-index --no-renames --no-ext-diff --no-textconv HEAD |
  base64 --wrap=0
"""


class PatchError(SandboxGymError, RuntimeError):
    """What an agent left cannot be made into a patch, or a patch cannot be applied."""


@dataclass(frozen=True)
class Patch:
    """What an agent changed.

    Attributes:
        text: A patch as `git apply` takes it; binary files and modes are in it.
        files: The files that it changes.
        left_out: Files that were changed too and are protected.
    """

    text: bytes
    files: tuple[str, ...]
    left_out: tuple[str, ...]


def capture(
    backend: Backend, pristine: Checkpoint, agent: Checkpoint, protected: Iterable[str] = ()
) -> Patch:
    """The difference between two moments of a repository.

    Args:
        backend: Of both moments.
        pristine: The moment before the agent began.
        agent: The moment to look at.
        protected: Files of the repository that the patch may not change, beside `PROTECTED`.

    Raises:
        PatchError: git could not say what was changed.
    """
    grader = backend.fork(pristine, views={_VIEW: agent})
    try:
        changed = [name.decode("utf-8", "surrogateescape") for name in _changed(grader)]
        left_out = [name for name in changed if is_protected(name, protected)]
        listed = b"".join(name.encode("utf-8", "surrogateescape") + b"\0" for name in left_out)
        text = _decoded(grader, _WRITE, stdin=listed)
    finally:
        grader.close()
    kept = tuple(name for name in changed if name not in set(left_out))
    return Patch(text, kept, tuple(left_out))


def apply(sandbox: Sandbox, patch: bytes) -> None:
    """Apply a patch to the repository of a sandbox.

    Raises:
        PatchError: It does not fit.
    """
    if not patch.strip():
        return
    done = sandbox.run(f"cd {WORKDIR} && git apply --whitespace=nowarn -", stdin=patch)
    if done.returncode != 0:
        raise PatchError(f"the patch does not apply: {done.output.strip()}")


def is_protected(name: str, more: Iterable[str] = ()) -> bool:
    """Whether a patch may not change a file; in any folder, in any case of letters."""
    last = PurePosixPath(name).name.lower()
    return name in set(more) or any(fnmatch.fnmatchcase(last, pattern) for pattern in PROTECTED)


def _changed(grader: Sandbox) -> list[bytes]:
    return [name for name in _decoded(grader, _COLLECT).split(b"\0") if name]


def _decoded(grader: Sandbox, command: str, stdin: bytes = b"") -> bytes:
    done = grader.run(f"set -o pipefail; {command}", stdin=stdin, output=MAX_CHARACTERS)
    if done.returncode != 0 or done.truncated:
        reason = "is too large" if done.truncated else f"failed: {done.output[-500:].strip()}"
        raise PatchError(f"the changes cannot be made into a patch: git's answer {reason}")
    return base64.b64decode(done.output)
