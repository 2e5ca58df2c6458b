from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from pathlib import Path

import pytest

from sandboxgym.sandboxes.browser import chromium
from sandboxgym.sandboxes.browser.errors import BrowserNotFoundError


@pytest.fixture(scope="session")
def browser() -> None:
    """Skips where there is no Chromium; all tests of a process share the one that there is."""
    try:
        chromium.find()
    except BrowserNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data: $SANDBOXGYM_SHARED, or ../shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SANDBOXGYM_SHARED", beside))
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}; set SANDBOXGYM_SHARED to the folder that has it")
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--repos",
        default=os.environ.get("SANDBOXGYM_REPOS"),
        metavar="DIR",
        help="clones of real repositories, named owner__name, for tests with SWE-bench's rows",
    )


@pytest.fixture(scope="session")
def real_repos(request: pytest.FixtureRequest) -> Path:
    """The folder with clones of real repositories."""
    given = request.config.getoption("--repos")
    if given is None:
        pytest.skip("no clones of real repositories: pass --repos DIR, or set SANDBOXGYM_REPOS")
    return Path(given)


@pytest.fixture(scope="session")
def alfworld_games(shared_data: Path, request: pytest.FixtureRequest) -> Path:
    """The real ALFWorld games, unpacked once into pytest's cache: the folder `json_2.1.1`."""
    archive = shared_data / "alfworld" / "json_2.1.1.tar.xz"
    status = archive.stat()
    cache: Path = request.config.cache.mkdir("alfworld")
    unpacked = cache / f"{status.st_size}-{status.st_mtime_ns}"
    if not unpacked.exists():
        scratch = Path(tempfile.mkdtemp(dir=cache))
        with tarfile.open(archive) as tar:
            tar.extractall(scratch, filter="data")
        try:
            scratch.rename(unpacked)
        except OSError:  # another test process was first
            shutil.rmtree(scratch)
    return unpacked / "json_2.1.1"
