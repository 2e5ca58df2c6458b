"""The command `sandboxgym`: one module for each of its commands.

Each has a function `add_command(commands)`, which adds its parser and sets `run`, the function that
takes the parsed options and returns the exit status. Other packages add commands by `further`.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from sandboxgym.cli import bench, check, doctor, further, play, store, tasks
from sandboxgym.cli import list as list_
from sandboxgym.cli.outcome import BROKEN_PIPE, INTERRUPTED, UNUSABLE, UnusableInputError
from sandboxgym.conformance.source import EnvironmentNotFoundError
from sandboxgym.core.version import __version__

__all__ = ["main"]

COMMANDS = (list_, check, bench, doctor, play, store, tasks)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        0 where all is well, 1 where a check failed, 2 where the input could not be used, 130 after
        an interrupt, 141 where nobody reads the output any more.
    """
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser(given).parse_args(given)
    if arguments is None:
        _look_in_the_working_folder()
    _accept_any_character()
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except (UnusableInputError, EnvironmentNotFoundError) as error:
        print(f"sandboxgym: error: {_one_line(error)}", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        print("sandboxgym: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes standard output once more at its end, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return status


def _look_in_the_working_folder() -> None:
    """Find modules of the working folder, as `python -m sandboxgym` does, in the script as well."""
    here = str(Path.cwd())
    if not getattr(sys.flags, "safe_path", False) and not {"", here} & set(sys.path):
        sys.path.insert(0, here)


def _accept_any_character() -> None:
    """Replace what the terminal's encoding does not have, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sandboxgym", description="Exact snapshot, restore and fork for environments."
    )
    parser.add_argument("--version", action="version", version=f"sandboxgym {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add_command(commands)
    if not arguments or arguments[0] not in (commands.choices or ()):
        further.add_commands(commands)
    return parser


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
