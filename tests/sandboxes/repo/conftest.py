"""Trees to start from."""

from __future__ import annotations

import contextlib

import pytest

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.sandboxes.repo.backend import Limits, SandboxError
from sandboxgym.sandboxes.repo.bases import base_of_folder
from sandboxgym.sandboxes.repo.docker.backend import connect
from sandboxgym.sandboxes.repo.overlay.backend import OverlayBackend
from tests.sandboxes.repo import docker_daemon


def make_overlay_backend(limits: Limits) -> OverlayBackend:
    """A backend, or the reason why this machine has none."""
    try:
        return OverlayBackend(limits)
    except (SandboxError, MissingDependencyError) as error:
        pytest.skip(f"the overlay backend cannot run here: {error}")


@pytest.fixture(scope="session")
def docker_address():
    """Where a daemon with the image `docker_daemon.IMAGE` answers."""
    pytest.importorskip("docker", reason="the package docker is not installed")
    with contextlib.ExitStack() as stack:
        try:
            address = stack.enter_context(docker_daemon.daemon())
            client = connect(address)
            stack.callback(client.close)
            docker_daemon.make_image(client)
        except docker_daemon.NoDaemonError as error:
            pytest.skip(f"no Docker here: {error}")
        stack.callback(client.images.remove, docker_daemon.IMAGE)
        yield address


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
