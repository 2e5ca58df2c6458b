"""Trees to start from."""

from __future__ import annotations

import pytest

from sandboxgym.sandboxes.repo.bases import base_of_folder


@pytest.fixture(scope="session")
def base_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("bases")


@pytest.fixture(scope="session")
def base(tmp_path_factory, base_cache):
    """A tree with a file and a folder."""
    tree = tmp_path_factory.mktemp("tree")
    (tree / "README").write_text("read me\n")
    (tree / "docs").mkdir()
    return base_of_folder(tree, cache=base_cache)
