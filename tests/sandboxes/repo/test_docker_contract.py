"""The docker backend does what any backend has to do."""

from __future__ import annotations

import pytest

from sandboxgym.sandboxes.repo.backend import Limits
from sandboxgym.sandboxes.repo.docker.backend import DockerBackend
from tests.sandboxes.repo.contract import BackendContract
from tests.sandboxes.repo.docker_daemon import IMAGE

LIMITS = Limits(seconds=20.0)


@pytest.fixture(scope="module")
def backend(docker_address):
    with DockerBackend(LIMITS, docker_address) as backend:
        yield backend


@pytest.fixture(scope="module")
def other_backend(docker_address):
    with DockerBackend(LIMITS, docker_address) as backend:
        yield backend


@pytest.fixture(scope="module")
def base(backend):
    return backend.base(IMAGE)


class TestDockerBackend(BackendContract):
    pass
