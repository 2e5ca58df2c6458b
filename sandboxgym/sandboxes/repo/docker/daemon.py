"""A Docker daemon, or Podman with its Docker socket: finding it, and what it says of errors."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.sandboxes.repo.backend import SandboxError


def connect(base_url: str | None = None) -> Any:
    """A client of the daemon at an address, or of the one that the environment names.

    Raises:
        MissingDependencyError: The package `docker` is not installed.
        SandboxError: No daemon answers.
    """
    try:
        import docker
        from docker.errors import DockerException
    except ImportError as error:
        raise MissingDependencyError(
            'the docker backend needs the package docker: pip install "sandboxgym[docker]"'
        ) from error
    try:
        client = docker.DockerClient(base_url) if base_url else docker.from_env()
        client.ping()
    except (DockerException, OSError) as error:
        raise SandboxError(
            f"no Docker daemon answers at {base_url or os.environ.get('DOCKER_HOST', 'its socket')}"
            f" ({error}): start one, or name its socket by base_url or DOCKER_HOST"
        ) from error
    return client


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """Errors of the daemon as ours."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except (DockerException, RequestException, OSError) as error:
        raise SandboxError(f"the daemon could not {what}: {error}") from error


def is_podman(client: Any) -> bool:
    """Whether it is Podman who answers."""
    components = client.version().get("Components") or ()
    return any("podman" in component["Name"].lower() for component in components)
