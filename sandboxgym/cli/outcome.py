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
