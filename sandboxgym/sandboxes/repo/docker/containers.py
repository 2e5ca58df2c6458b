"""Containers: what each may have, and that it has nothing else of the machine."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from sandboxgym.sandboxes.repo.backend import Limits
from sandboxgym.sandboxes.repo.docker.daemon import is_podman

_MAIN = ["sleep", "infinity"]  # what a container runs, so that there is one
_PROCESSES_OF_A_USER = 16384


class DiskNotKeptWarning(UserWarning):
    """A daemon's storage cannot keep the limit `disk`."""


class Containers:
    """Makes containers of a daemon.

    Args:
        client: Of the package `docker`.
        limits: What commands may use.
        labels: What each container and image has.

    Attributes:
        keeps_disk: Whether the limit `disk` is kept; None before the first container.
        is_podman: Whether the daemon is Podman.
    """

    def __init__(self, client: Any, limits: Limits, labels: Mapping[str, str]) -> None:
        self.client = client
        self.limits = limits
        self.labels = dict(labels)
        self.keeps_disk: bool | None = None
        self.is_podman = is_podman(client)

    def create(self, image: str, binds: Sequence[tuple[str, str]] = (), **other: Any) -> Any:
        """A new container that is not started; nothing of the machine is in it but the binds."""
        from docker.types import Ulimit

        limits = self.limits
        ulimits = {"nofile": limits.open_files, "fsize": limits.file_size, "core": 0}
        if self.is_podman:  # which else asks for more processes than it may have itself
            ulimits["nproc"] = _PROCESSES_OF_A_USER
        settings = {
            "entrypoint": _MAIN,
            "command": [],
            "user": "0:0",  # whom the agent cannot signal; without any capability
            "init": True,
            "hostname": "sandbox",
            "working_dir": "/",
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "pids_limit": limits.processes,
            "mem_limit": limits.total_memory,
            "memswap_limit": limits.total_memory,
            "ulimits": [
                Ulimit(name=name, soft=value, hard=value) for name, value in ulimits.items()
            ],
            "volumes": [f"{there}:{inside}:ro" for there, inside in binds],
            "labels": self.labels,
            "healthcheck": {"test": ["NONE"]},
        }
        return self._created(image, {**settings, **other})

    def _created(self, image: str, settings: dict[str, Any]) -> Any:
        """A container that may write as much as `disk` says, as far as the daemon can do that."""
        from docker.errors import APIError

        create = self.client.containers.create
        if self.keeps_disk is False:
            return create(image, **settings)
        try:
            made = create(image, storage_opt={"size": str(self.limits.disk)}, **settings)
        except APIError as error:
            if "storage" not in str(error).lower():
                raise
            made = create(image, **settings)
            self.keeps_disk = False
            warnings.warn(
                f"the limit disk={self.limits.disk} is not kept by this daemon: commands can fill "
                f"its storage. It says: {error.explanation}",
                DiskNotKeptWarning,
                stacklevel=2,
            )
        else:
            self.keeps_disk = True
        return made
