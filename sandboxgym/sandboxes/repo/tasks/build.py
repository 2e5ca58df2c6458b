"""Makes the tasks that ship, from the packages and the statements beside this file.

    python -m sandboxgym.sandboxes.repo.tasks.build

Tasks have numbers, and their statements are written by hand for what these tasks are: after a
change of the packages, look at each statement anew. A task without one is printed, and left out.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.repo.bases import git, settle
from sandboxgym.sandboxes.repo.tasks import shipped, writing
from sandboxgym.sandboxes.repo.tasks.making import Maker

STATEMENTS = Path(__file__).with_name("statements")
SEEDS = {
    "keepcache": 4,
    "littlecalc": 4,
    "rowfile": 4,
    "spans": 4,
    "taskorder": 5,
    "tidytext": 5,
}
"""By package: chosen for mistakes that are worth looking for."""
TASKS_OF_A_PACKAGE = 5


def main() -> None:
    """Write the file that ships."""
    rows = [row for package in shipped.packages() for row in rows_of(package)]
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    shipped.ROWS.write_text("".join(lines), encoding="utf-8")


def rows_of(package: str) -> Iterator[dict[str, Any]]:
    """The rows of a package whose statements are written."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch, package)
        shipped.copy_package(package, tree)
        settle(tree)
        maker = Maker(tree, git(tree, "ls-files", "-z").split("\0"))
        for number, broken in enumerate(maker.broken(SEEDS[package], TASKS_OF_A_PACKAGE), start=1):
            name = f"{shipped.OWNER}__{package}-{number}"
            statement = STATEMENTS / f"{name}.md"
            row = writing.row(
                broken,
                tree,
                maker.framework,
                name=name,
                repo=f"{shipped.OWNER}/{package}",
                statement=statement.read_text(encoding="utf-8") if statement.exists() else "",
            )
            if row["problem_statement"]:
                yield row
            else:
                tests = "\n".join(f"{test}: {said}" for test, said in broken.symptoms.items())
                print(f"no statement for {name}:\n{row['patch']}{tests}\n")


if __name__ == "__main__":
    main()
