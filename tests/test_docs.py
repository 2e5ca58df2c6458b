"""Every Python example in the README and the docs is run, page by page, top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples(page: Path) -> list[tuple[int, str]]:
    text = page.read_text("utf-8")
    return [(text[: m.start(1)].count("\n"), m[1]) for m in EXAMPLE.finditer(text)]


@pytest.mark.parametrize("page", [p for p in PAGES if examples(p)], ids=lambda p: p.name)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": f"docs.{page.stem}"}
    for line, code in examples(page):
        padded = "\n" * line + code  # so that a traceback has the page's line numbers
        exec(compile(padded, str(page), "exec"), namespace)


def test_there_are_examples_to_run():
    assert sum(len(examples(page)) for page in PAGES) >= 8
