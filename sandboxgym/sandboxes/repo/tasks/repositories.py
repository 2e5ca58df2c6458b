"""Makes tasks from a repository of the user's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sandboxgym.core.errors import DataNotFoundError
from sandboxgym.sandboxes.repo.bases import RepositoryError, check_out_orphan, git
from sandboxgym.sandboxes.repo.tasks import writing
from sandboxgym.sandboxes.repo.tasks.making import Maker, MakingError
from sandboxgym.sandboxes.repo.tasks.running import PYTEST
from sandboxgym.sandboxes.repo.tasks.symptoms import statement

OWNER = "local"
_ASK = "import sys; print('%d.%d' % sys.version_info[:2])"
_ASK_PYTEST = "import pytest; print(pytest.__version__)"


def tasks_of_repository(
    path: str | os.PathLike[str],
    *,
    seed: int = 0,
    limit: int | None = None,
    framework: str | None = None,
    python: str | None = None,
    seconds: float = 300.0,
) -> Iterator[dict[str, Any]]:
    """Break functions of a repository one at a time, and give a row for each that tests notice.

    Its tests run on this machine, in a copy of its last commit.

    Args:
        path: The repository.
        seed: Decides which functions come first, and which mistakes.
        limit: How many tasks at most.
        framework: "unittest" or "pytest"; None finds out.
        python: The interpreter that has what the tests need; None takes this one.
        seconds: How long all tests may take once.

    Raises:
        DataNotFoundError: There is no such folder, or no such interpreter.
        MakingError: It is no git repository, or has no tests that pass.
    """
    folder = Path(path).resolve()
    commit = _commit(folder)
    python = python or sys.executable
    if shutil.which(python) is None:
        raise DataNotFoundError(f"there is no program {python}: name the Python to run tests with")
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.name.removesuffix(".git")).strip("-.") or "repo"
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch, name)
        check_out_orphan(folder, commit, tree)
        files = git(tree, "ls-files", "-z").split("\0")
        maker = Maker(tree, files, framework=framework, python=python, seconds=seconds)
        for number, broken in enumerate(maker.broken(seed, limit), start=1):
            row = writing.row(
                broken,
                tree,
                maker.framework,
                name=f"{OWNER}__{name}-{number}",
                repo=f"{OWNER}/{name}",
                statement=statement(name, broken.symptoms.items()),
            )
            yield {**row, "base_commit": commit, "setup": _setup(maker, tree, python)}


def _commit(folder: Path) -> str:
    if not folder.is_dir():
        raise DataNotFoundError(f"{folder} is no folder: give the folder of a git repository")
    # An own repository, and not one further up that this folder only lies in.
    if not (folder / ".git").exists() and not (folder / "HEAD").is_file():
        raise MakingError(
            f"{folder} is no git repository: tasks are made from what is committed, so run "
            "`git init`, `git add .` and `git commit` there, or give the repository's own folder"
        )
    try:
        return git(folder, "rev-parse", "--verify", "HEAD^{commit}").strip()
    except RepositoryError as error:
        raise MakingError(f"{folder} has no commit yet: commit what tasks are made from") from error


def _setup(maker: Maker, tree: Path, python: str) -> dict[str, Any]:
    """What a sandbox needs to run the tests, beside what the repository itself needs."""
    pins = []
    if maker.framework is PYTEST:
        pins.append(f"pytest=={_asked(python, _ASK_PYTEST)}")
    return {
        "python": _asked(python, _ASK),
        "pins": pins,
        "environment": maker.framework.environment(tree),
    }


def _asked(python: str, question: str) -> str:
    done = subprocess.run([python, "-c", question], capture_output=True, text=True, check=True)
    return done.stdout.strip()
