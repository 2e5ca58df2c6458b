"""The overlay backend does what any backend has to do."""

from __future__ import annotations

import pytest

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.sandboxes.repo.backend import Limits, SandboxError
from sandboxgym.sandboxes.repo.overlay.backend import OverlayBackend
from tests.sandboxes.repo.contract import BackendContract


def make_backend() -> OverlayBackend:
    try:
        return OverlayBackend(Limits(seconds=20.0))
    except (SandboxError, MissingDependencyError) as error:
        pytest.skip(f"the overlay backend cannot run here: {error}")


@pytest.fixture(scope="module")
def backend():
    with make_backend() as backend:
        yield backend


@pytest.fixture(scope="module")
def other_backend():
    with make_backend() as backend:
        yield backend


class TestOverlayBackend(BackendContract):
    pass
