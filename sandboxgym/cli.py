"""The command `sandboxgym`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

from sandboxgym.conformance.checks import CHECKS
from sandboxgym.conformance.report import ConformanceReport
from sandboxgym.conformance.runner import DEFAULT_DEPTH, DEFAULT_SEEDS, Suite
from sandboxgym.conformance.source import EnvironmentNotFoundError, Source
from sandboxgym.core.errors import SandboxGymError
from sandboxgym.core.front import Forkable
from sandboxgym.core.version import __version__

OK, FAILED, UNUSABLE = 0, 1, 2


class UnusableInputError(SandboxGymError):
    """What the user asked for cannot be done; the message is one line that says why."""


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
    _add_check(commands)
    _add_list(commands)
    return parser


def _add_check(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "check",
        help="find out whether an environment forks exactly",
        description="Run the conformance suite on an environment. Exit status: 0 where no check "
        "failed, 1 where one did, 2 where the environment could not be made.",
    )
    command.add_argument("env", metavar="ENV", help="a Gymnasium id, or module:factory")
    command.add_argument(
        "--json", metavar="FILE", help="write the report as JSON to FILE, or to - (standard output)"
    )
    command.add_argument(
        "--seeds",
        type=_positive,
        default=len(DEFAULT_SEEDS),
        metavar="N",
        help="how many seeds to record episodes with (default: %(default)s)",
    )
    command.add_argument(
        "--depth",
        type=_positive,
        default=DEFAULT_DEPTH,
        metavar="N",
        help="how many steps to record of each episode (default: %(default)s)",
    )
    command.add_argument(
        "--kwargs",
        nargs="+",
        action="extend",
        type=_assignment,
        default=[],
        metavar="NAME=VALUE",
        help="arguments of the environment; a value is JSON, or else text",
    )
    command.set_defaults(run=_check)


def _check(options: argparse.Namespace) -> int:
    source = Source.of(options.env, dict(options.kwargs))
    _try_to_make(source)
    suite = Suite(source, depth=options.depth, seeds=range(options.seeds))
    progress = sys.stderr if options.json == "-" else sys.stdout
    results = []
    for check in CHECKS:
        results.append(suite.result(check))
        if len(results) == 1:
            print(suite.report(results).header(), file=progress)
        print(results[-1], file=progress, flush=True)
    report = suite.report(results)
    print(report.summary(), file=progress)
    if options.json is not None:
        _write(report, options.json)
    return OK if report.ok else FAILED


def _try_to_make(source: Source) -> None:
    try:
        source.make().close()
    except Exception as error:
        raise UnusableInputError(
            f"{source.name} cannot be made ({type(error).__name__}): {error}"
        ) from error


def _write(report: ConformanceReport, target: str) -> None:
    if target == "-":
        print(report.to_json())
        return
    try:
        Path(target).write_text(report.to_json() + "\n", encoding="utf-8")
    except OSError as error:
        raise UnusableInputError(f"the report cannot be written: {error}") from error


def _add_list(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "list",
        help="show the registered environments that fork",
        description="Show the registered environments that fork by themselves. Any other Gymnasium "
        "environment forks by replay, through sandboxgym.forkable(env).",
    )
    command.set_defaults(run=_list)


def _list(options: argparse.Namespace) -> int:
    for name, spec in sorted(gym.registry.items()):
        if Forkable.wrapper_spec() in spec.additional_wrappers:
            print(name)
    return OK


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
