"""One writer for a run directory: a second training in it would mix its rows with the first one's.

Whoever only reads a run, while it is trained or after, needs no lock.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from sandboxgym.core.errors import SandboxGymError

LOCK = "writer.lock"


class RunDirectoryError(SandboxGymError, OSError):
    """The directory of a run is in use, is missing, or does not hold what a run writes."""


def hold(folder: Path) -> IO[str]:
    """Hold a run directory for this process until what is returned is closed.

    The system frees it when the process ends, however it ends; children do not inherit it.

    Raises:
        RunDirectoryError: Another process holds it.
    """
    file = (folder / LOCK).open("a+", encoding="utf-8")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise RunDirectoryError(
            f"{folder} is being trained in by another process (pid {holder}): wait until it ends, "
            "end it, or choose another --out"
        ) from error
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file
