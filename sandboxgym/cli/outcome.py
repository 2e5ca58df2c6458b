"""How a command ends: its exit status, its one line of error, the JSON that it leaves."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeAlias

from sandboxgym.core.errors import SandboxGymError

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

OK, FAILED, UNUSABLE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141


class UnusableInputError(SandboxGymError):
    """What the user asked for cannot be done; the message is one line that says why."""


def require_writable(target: str | None) -> None:
    """Refuse a report that has nowhere to go, before the work that it would tell of.

    Raises:
        UnusableInputError: There is no such folder, or one is in the place of the file.
    """
    if target is None or target == "-":
        return
    path = Path(target)
    if path.is_dir():
        raise UnusableInputError(f"the report cannot be written: {target} is a folder")
    if not path.parent.is_dir():
        raise UnusableInputError(f"the report cannot be written: there is no folder {path.parent}")


def write_json(text: str, target: str) -> None:
    """Write a report to a file, or to standard output where the target is "-".

    Raises:
        UnusableInputError: The file cannot be written.
    """
    if target == "-":
        print(text)
        return
    try:
        Path(target).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UnusableInputError(f"the report cannot be written: {error}") from error
