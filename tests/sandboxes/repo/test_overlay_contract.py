"""The overlay backend does what any backend has to do."""

from __future__ import annotations

import pytest

from sandboxgym.sandboxes.repo.backend import Limits
from tests.sandboxes.repo.conftest import make_overlay_backend
from tests.sandboxes.repo.contract import BackendContract

LIMITS = Limits(seconds=20.0)


@pytest.fixture(scope="module")
def backend():
    with make_overlay_backend(LIMITS) as backend:
        yield backend


@pytest.fixture(scope="module")
def other_backend():
    with make_overlay_backend(LIMITS) as backend:
        yield backend


class TestOverlayBackend(BackendContract):
    pass
