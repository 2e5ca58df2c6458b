"""The command `sandboxgym`: one module for each of its commands.

Each has a function `add_command(commands)`, which adds its parser and sets `run`, the function that
takes the parsed options and returns the exit status.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from sandboxgym.cli import check, play, tasks
from sandboxgym.cli import list as list_
from sandboxgym.cli.outcome import UNUSABLE, UnusableInputError
from sandboxgym.conformance.source import EnvironmentNotFoundError
from sandboxgym.core.version import __version__

__all__ = ["main"]

COMMANDS = (list_, check, play, tasks)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        0 where all is well, 1 where a check failed, 2 where the input could not be used.
    """
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except (UnusableInputError, EnvironmentNotFoundError) as error:
        print(f"sandboxgym: error: {_one_line(error)}", file=sys.stderr)
        return UNUSABLE
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sandboxgym", description="Exact snapshot, restore and fork for environments."
    )
    parser.add_argument("--version", action="version", version=f"sandboxgym {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add_command(commands)
    return parser


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
