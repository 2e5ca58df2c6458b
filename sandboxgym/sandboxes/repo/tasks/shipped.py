"""The tasks that come with this package: rows, and the trees that go with them."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

from sandboxgym.core.errors import DataNotFoundError
from sandboxgym.sandboxes.repo.backend import DEFAULT_ENVIRONMENT, Base
from sandboxgym.sandboxes.repo.bases import Skeleton, content_name, settle
from sandboxgym.sandboxes.repo.swebench.rows import Row, read_rows

OWNER = "sandboxgym"
ROWS = Path(__file__).with_name("tasks.jsonl")
PACKAGES = Path(__file__).with_name("packages")


def shipped_tasks() -> list[Row]:
    """All tasks that ship."""
    return read_rows(ROWS)


def packages() -> list[str]:
    """The names of the packages that they are about."""
    return sorted(folder.name for folder in PACKAGES.iterdir() if folder.is_dir())


def base_of_task(row: Row, *, cache: Path | None = None) -> Base:
    """The tree of a task, with the fault and without the tests that notice it.

    Args:
        row: One of `shipped_tasks()`.
        cache: Where to build it; None takes that of all bases.

    Raises:
        DataNotFoundError: The row is not about a package that ships.
    """
    owner, _, package = row.repo.partition("/")
    if owner != OWNER or package not in packages():
        raise DataNotFoundError(
            f"{row.instance_id} is about {row.repo}, which does not ship with this package: "
            "give the folder with its repository"
        )

    def fill(tree: Path) -> None:
        copy_package(package, tree)
        settle(tree, row.base_patch)

    change = hashlib.blake2b(row.base_patch.encode(), digest_size=16).hexdigest()
    what = f"package {package} {content_name(PACKAGES / package)} with {change}"
    return _skeleton(cache).base(what, fill)


def copy_package(package: str, tree: Path) -> None:
    """Copy a package as its authors wrote it: what Python compiled is left behind."""
    shutil.copytree(PACKAGES / package, tree, ignore=shutil.ignore_patterns("__pycache__"))


def _skeleton(cache: Path | None) -> Skeleton:
    """With the system's Python where it has one that the packages run on, or else with ours."""
    environment = {"PYTHONDONTWRITEBYTECODE": "1"}
    if Path("/usr/bin/python3").exists():
        return Skeleton((), environment, cache)
    own = Path(sys.base_prefix)
    environment["PATH"] = f"{own / 'bin'}:{DEFAULT_ENVIRONMENT['PATH']}"
    return Skeleton((own,), environment, cache)
