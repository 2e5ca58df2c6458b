"""Whose a container or an image is, and removing what a process left that is gone.

All that we make in a daemon has two labels: the process that made it, and its backend. A process is
named by machine, boot, process namespace, number and start time, so that nobody mistakes another
process for it, and we judge only those that we could see.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

OWNER, BACKEND = "sandboxgym.owner", "sandboxgym.backend"


def this_process() -> str:
    """The label of what this process makes."""
    return f"{_place()} {os.getpid()} {_start_of(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Whether a process does surely not run any more."""
    place, _, process = owner.partition(" ")
    number, _, start = process.partition(" ")
    machine, _, session = place.partition(":")
    here, _, session_here = _place().partition(":")
    if machine != here or not number.isdigit():
        return False
    if session.partition(":")[0] != session_here.partition(":")[0]:
        return True  # the machine was started anew since then
    return session == session_here and _start_of(int(number)) != start


def remove_leftovers(client: Any) -> None:
    """Remove what processes made that are gone."""
    found: set[str] = set()
    for what in (*client.containers.list(**_all(OWNER)), *client.images.list(**_all(OWNER))):
        found.add(what.labels.get(OWNER, ""))
    for owner in found:
        if is_gone(owner):
            remove_labelled(client, f"{OWNER}={owner}")


def remove_labelled(client: Any, label: str) -> None:
    """Remove all containers and images with a label; images after those made from them."""
    from docker.errors import APIError, NotFound

    for container in client.containers.list(**_all(label)):
        try:
            container.remove(force=True, v=True)
        except NotFound:
            continue  # somebody else removes it too
        except APIError as error:
            if error.status_code != 409:  # its removal is under way
                raise
    waiting = client.images.list(**_all(label))
    while waiting:
        kept = [image for image in waiting if not _removed(client, image.id)]
        if len(kept) == len(waiting):
            return  # used by what is not ours; the next start tries again
        waiting = kept


def _removed(client: Any, image: str) -> bool:
    from docker.errors import ImageNotFound

    try:
        return remove_image(client, image)
    except ImageNotFound:
        return True


def remove_image(client: Any, image: str) -> bool:
    """Remove an image; False where others are made from it, or containers run on it."""
    from docker.errors import APIError, ImageNotFound

    try:
        client.api.remove_image(image, force=False, noprune=True)
    except ImageNotFound:
        return True
    except APIError as error:
        if error.status_code == 409:
            return False
        raise
    return True


def _all(label: str) -> dict[str, Any]:
    return {"all": True, "filters": {"label": label}}


def _place() -> str:
    """Where a process number means the same process: machine, boot and namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return f"{platform.node()}:{boot}:{namespace}"


def _start_of(process: int) -> str:
    """When a process began, in ticks since the boot; "" where there is no such process."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    fields = status.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
