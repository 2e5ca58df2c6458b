"""The examples of a library's page in the docs, run with the library."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLE = re.compile(r"^```py\n(.*?)^```", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    """The text of a page."""
    return (ROOT / "docs" / "integrations" / f"{name}.md").read_text("utf-8")


def run_page(name: str, folder: Path, *, elsewhere: tuple[str, str] = ("", "")) -> str:
    """Run what a page marks as `py`, from top to bottom as one program; what it printed.

    The modules of `examples/` can be imported, as where a reader tries it in that folder.

    Args:
        name: Of the page.
        folder: Where to run it.
        elsewhere: An address that the page has, and the one where the server is.
    """
    text = page(name).replace(*elsewhere)
    program = ""
    for found in EXAMPLE.finditer(text):  # errors have the page's line numbers
        program += "\n" * (text[: found.start(1)].count("\n") - program.count("\n")) + found[1]
    assert program, f"{name}.md has no example"
    script = folder / f"page_of_{name}.py"
    script.write_text(program)
    path = os.pathsep.join([str(ROOT), str(ROOT / "examples")])
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},  # networks are small
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
