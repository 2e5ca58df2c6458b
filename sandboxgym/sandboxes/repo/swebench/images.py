"""The trees of rows from their Docker images, run without Docker once they are unpacked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.repo.backend import Base
from sandboxgym.sandboxes.repo.docker.backend import connect
from sandboxgym.sandboxes.repo.docker.images import base_of_image
from sandboxgym.sandboxes.repo.swebench.rows import Row, RowError

CONDA = "/opt/miniconda3"
ENVIRONMENT = f"{CONDA}/envs/testbed"
"""Where images of SWE-bench have the packages of their task."""


class FromImages:
    """Makes the trees of rows from the images that they name: `SWEBenchEnv(base_of=...)`.

    Each image is unpacked once into the cache of bases, which takes as much disk as it has files.
    Its repository is committed anew, without its history.

    Args:
        client: A client of the package `docker`, or the address of a daemon; None takes the one
            that the environment names.
        cache: Where to keep the trees; None takes that of all bases.
    """

    def __init__(self, client: Any = None, *, cache: Path | None = None) -> None:
        self.client = connect(client) if client is None or isinstance(client, str) else client
        self.cache = cache

    def __call__(self, row: Row) -> Base:
        """The tree of a row.

        Raises:
            RowError: The row names no image.
            DataNotFoundError: The daemon does not have it.
            RepositoryError: There is no repository in its working folder.
        """
        if not row.image:
            raise RowError(f"{row.instance_id}: field 'image' is empty, so that there is no image")
        base = base_of_image(self.client, row.image, cache=self.cache, anew=True)
        return replace(base, environment=_activated(base))

    def __deepcopy__(self, memo: object) -> FromImages:
        """Itself: Gymnasium copies the arguments of environments, and means the same daemon."""
        return self


def _activated(base: Base) -> dict[str, str]:
    """Variables of a shell in which the environment of the task is active, where there is one."""
    variables = {**base.environment, "PYTHONDONTWRITEBYTECODE": "1"}
    if (base.root / ENVIRONMENT[1:]).is_dir():
        variables |= {
            "PATH": f"{ENVIRONMENT}/bin:{variables['PATH']}",
            "CONDA_PREFIX": ENVIRONMENT,
            "CONDA_DEFAULT_ENV": "testbed",
        }
    return variables
