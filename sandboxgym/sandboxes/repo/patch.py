"""Patches: what an agent changed, what of it may be graded, and applying it to a pristine tree."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from sandboxgym.core.errors import SandboxGymError
from sandboxgym.sandboxes.repo.backend import CommandResult, Sandbox
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

# What is in the git directory outranks every .gitattributes: files are taken as they are.
_RAW = "* -text -ident !eol !filter !working-tree-encoding"
GIT = (
    "git -c core.hooksPath=/dev/null -c core.fsmonitor= -c core.untrackedCache=false "
    "-c core.excludesFile=/dev/null -c core.attributesFile=/dev/null -c core.quotePath=true "
    "-c core.protectNTFS=false -c core.protectHFS=false -c core.fileMode=true "
    '--git-dir="$pristine/.git"'
)
"""git for a shell whose variable `pristine` names the repository: nothing in it has a say."""
TAKE_AS_IT_IS = f"""\
mkdir -p "$pristine/.git/info" && echo '{_RAW}' > "$pristine/.git/info/attributes"
"""
"""Lets git write down and apply all files byte by byte."""
_APPLY = f"""\
set -e
{TAKE_AS_IT_IS}
cd "$pristine"
{GIT} --work-tree="$pristine" apply --whitespace=nowarn -
"""


FULL = "the disk is full, so that nothing can be graded"


class PatchError(SandboxGymError, RuntimeError):
    """What an agent left cannot be made into a patch, or a patch cannot be applied."""


class NoRoomError(PatchError):
    """The disk of the sandboxes is full."""

    def __init__(self) -> None:
        super().__init__(FULL)


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
