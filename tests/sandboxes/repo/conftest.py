"""Trees to start from."""

from __future__ import annotations

import pytest

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.sandboxes.repo.backend import Limits, SandboxError
from sandboxgym.sandboxes.repo.bases import base_of_folder
from sandboxgym.sandboxes.repo.overlay.backend import OverlayBackend


def make_overlay_backend(limits: Limits) -> OverlayBackend:
    """A backend, or the reason why this machine has none."""
    try:
        return OverlayBackend(limits)
    except (SandboxError, MissingDependencyError) as error:
        pytest.skip(f"the overlay backend cannot run here: {error}")


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
