"""Every Python example in the README and the docs is run: a page is one fresh program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sandboxgym.sandboxes.repo.backend import Limits
from tests.sandboxes.repo.conftest import make_overlay_backend

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NEED_SANDBOXES = {"repo.md"}
NEED_CHROMIUM = {"browser.md"}
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples(page: Path) -> list[tuple[int, str]]:
    text = page.read_text("utf-8")
    return [(text[: m.start(1)].count("\n"), m[1]) for m in EXAMPLE.finditer(text)]


@pytest.mark.parametrize("page", [p for p in PAGES if examples(p)], ids=lambda p: p.name)
def test_examples_run(page, tmp_path, request):
    if page.name in NEED_SANDBOXES:
        make_overlay_backend(Limits()).close()  # or the test is skipped, with the reason
    if page.name in NEED_CHROMIUM:
        request.getfixturevalue("browser")
    program = ""
    for line, code in examples(page):
        program += "\n" * (line - program.count("\n")) + code  # errors have the page's line numbers
    script = tmp_path / f"{page.stem}.py"
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_there_are_examples_to_run():
    assert sum(len(examples(page)) for page in PAGES) >= 8
