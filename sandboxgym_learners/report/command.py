"""`sandboxgym view RUN_DIR...`: write the page about some training runs, and say where it is."""

from __future__ import annotations

import argparse
import shlex
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from sandboxgym.cli.outcome import OK, Commands, UnusableInputError
from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.report.page import write_report
from sandboxgym_learners.report.runs import load_runs

DESCRIPTION = (
    "Write a page about training runs: curves, costs, and every rollout tree that was kept. It is "
    "one file that loads nothing."
)


def add_command(commands: Commands) -> None:
    """Add the command's parser."""
    command = commands.add_parser(
        "view", help="write a page about training runs", description=DESCRIPTION
    )
    add_arguments(command)
    command.set_defaults(run=_view)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="RUN_DIR",
        help="the directory of a run, or a folder that holds several",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        metavar="PATH",
        help="a file that ends in .html, or the folder of index.html (default: report)",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def view(options: argparse.Namespace, *, program: Sequence[str]) -> Path:
    """Write the page that the options ask for; `program` is how this was called.

    Raises:
        SandboxGymError: A run cannot be read, or the page cannot be written.
    """
    runs: list[Path] = options.runs
    command = [*program, *(str(folder) for folder in runs), "--out", str(options.out)]
    path = write_report(load_runs(runs), options.out, command=shlex.join(command))
    print(f"{path}\n  {path.resolve().as_uri()}")
    if options.open and not webbrowser.open(path.resolve().as_uri()):
        print("No browser was found to open it.")
    return path


def _view(options: argparse.Namespace) -> int:
    try:
        view(options, program=["sandboxgym", "view"])
    except SandboxGymError as error:
        raise UnusableInputError(str(error)) from error
    return OK
