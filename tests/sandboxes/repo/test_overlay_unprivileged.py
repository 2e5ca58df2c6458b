"""The same tests of the overlay backend again, as a user without privileges."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
NOBODY = 65534
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", "-m", "not slow and not peers")
SECONDS = 280


def readable_by_others(path: Path) -> bool:
    """Whether any user may read a file or enter a folder."""
    path = path.resolve()
    return all(folder.stat().st_mode & 1 for folder in path.parents) and bool(
        path.stat().st_mode & 4
    )


@pytest.fixture(scope="module")
def python():
    """A Python of our version that any user may run."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for found in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        if Path(found).exists() and readable_by_others(Path(found)):
            return found
    pytest.skip(f"there is no {version} that every user may run")


@pytest.mark.skipif(os.geteuid() != 0, reason="all tests run without privileges already")
@pytest.mark.parametrize(
    "file", ["test_overlay_contract.py", "test_attacks.py", "test_overlay_twins.py"]
)
def test_all_that_holds_for_root_holds_for_a_user(python, file):
    packages = [path for path in sys.path if path.endswith("-packages")]
    if not all(readable_by_others(Path(path)) for path in (ROOT, *packages)):
        pytest.skip("this installation is not readable for other users")
    with tempfile.TemporaryDirectory() as home:  # not pytest's, which is closed to other users
        os.chown(home, NOBODY, NOBODY)
        done = subprocess.run(
            [python, *PYTEST, HERE / file],
            cwd=ROOT,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            env={
                "PATH": os.environ["PATH"],
                "HOME": home,
                "TMPDIR": home,
                "PYTHONPATH": os.pathsep.join([*packages, str(ROOT)]),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode == 0 and "passed" not in last:
        pytest.skip(f"not for a user without privileges here: {last}")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
