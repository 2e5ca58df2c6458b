from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.peers

PAGE = Path(__file__).parents[2] / "docs" / "text.md"
EXAMPLES = re.findall(r"^```py\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
NEEDS = {
    "textworld_env": "textworld",
    "TextWorld-v0": "textworld",
    "textworld_game": "textworld",
    "Jericho-v0": "jericho",
    "ScienceWorld-v0": "scienceworld",
    "TextWorldExpress-v0": "textworld_express",
    "StockALFWorld-v0": "fast_downward",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_run(example, tmp_path):
    for word, library in NEEDS.items():
        if word in example and importlib.util.find_spec(library) is None:
            pytest.skip(f"needs {library}")
    if ("ScienceWorld" in example or "Express" in example) and shutil.which("java") is None:
        pytest.skip("needs Java")
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": str(PAGE.parents[1]),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
    )
    assert done.returncode == 0, done.stderr


def test_there_is_an_example_of_each():
    assert len(EXAMPLES) == 6
