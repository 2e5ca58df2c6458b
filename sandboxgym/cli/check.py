"""`sandboxgym check`: run the conformance suite on an environment."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TextIO

from sandboxgym.cli import target
from sandboxgym.cli.outcome import (
    FAILED,
    OK,
    Commands,
    UnusableInputError,
    require_writable,
    write_json,
)
from sandboxgym.conformance.options import (
    DEFAULT_CALL_TIMEOUT,
    DEFAULT_DEPTH,
    DEFAULT_SEEDS,
    OptionError,
    Options,
)
from sandboxgym.conformance.policies import PolicyNotFoundError
from sandboxgym.conformance.report import CheckResult, ConformanceReport
from sandboxgym.conformance.runner import Suite
from sandboxgym.conformance.source import Source


def add_command(commands: Commands) -> None:
    """Add the command's parser."""
    command = commands.add_parser(
        "check",
        help="find out whether an environment forks exactly",
        description="Run the conformance suite on an environment. Exit status: 0 where no check "
        "failed and one passed, 1 where one failed or nothing was proven, 2 where the environment "
        "could not be made or the arguments make no sense.",
    )
    target.add_arguments(command)
    _add_reports(command)
    _add_episodes(command)
    _add_choice(command)
    _add_limits(command)
    command.set_defaults(run=_check)


def _add_reports(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--json", metavar="FILE", help="write the report as JSON to FILE, or to - (standard output)"
    )
    command.add_argument(
        "--junit", metavar="FILE", help="write the report as JUnit XML to FILE, or to -"
    )


def _add_episodes(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--seeds",
        type=target.positive,
        metavar="N",
        help=f"how many seeds to record episodes with, from 0 on (default: {len(DEFAULT_SEEDS)})",
    )
    command.add_argument(
        "--seed",
        type=int,
        action="append",
        metavar="SEED",
        help="record an episode with this very seed (may be given again)",
    )
    command.add_argument(
        "--depth",
        type=target.positive,
        default=DEFAULT_DEPTH,
        metavar="N",
        help="how many steps to record of each episode (default: %(default)s)",
    )
    command.add_argument(
        "--policy",
        metavar="MODULE:FUNCTION",
        help="what plays them: takes observation, info, action space and a generator, returns an "
        "action (default: an admissible command of the info, else a sample of the action space)",
    )


def _add_choice(command: argparse.ArgumentParser) -> None:
    for name, what in (("--only", "run these checks and what they build on"), ("--skip", "do not")):
        command.add_argument(
            name,
            nargs="+",
            action="extend",
            metavar="CHECK",
            help=f"{what}; by number or name, such as 06 or no-leaks",
        )


def _add_limits(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--time-budget",
        type=float,
        metavar="SECONDS",
        help="stop after so many seconds; the checks that are left are not run",
    )
    command.add_argument(
        "--memory-budget",
        type=float,
        metavar="MB",
        help="stop a check in which the environment takes more memory; it is not run",
    )
    command.add_argument(
        "--call-timeout",
        type=float,
        default=DEFAULT_CALL_TIMEOUT,
        metavar="SECONDS",
        help="how long one call on the environment may take; more is a failure "
        "(default: %(default)g)",
    )
    command.add_argument(
        "--in-process",
        action="store_true",
        help="run the checks in this process, for a debugger; without limits on calls and memory",
    )


def _check(arguments: argparse.Namespace) -> int:
    options = _options(arguments)
    source = _with_imports(target.source_of(arguments), arguments)
    progress = sys.stderr if "-" in (arguments.json, arguments.junit) else sys.stdout
    with Suite(source, options) as suite:
        report = _run(suite, options, progress)
    if arguments.json is not None:
        write_json(report.to_json(), arguments.json)
    if arguments.junit is not None:
        write_json(report.to_junit().rstrip(), arguments.junit)
    return OK if report.ok else FAILED


def _options(arguments: argparse.Namespace) -> Options:
    if arguments.seeds is not None and arguments.seed is not None:
        raise UnusableInputError("give --seeds N or --seed SEED, not both")
    if arguments.json == arguments.junit == "-":
        raise UnusableInputError("only one of --json and --junit can go to standard output")
    require_writable(arguments.json)
    require_writable(arguments.junit)
    try:
        return Options(
            seeds=arguments.seed or range(arguments.seeds or len(DEFAULT_SEEDS)),
            depth=arguments.depth,
            policy=arguments.policy,
            only=arguments.only,
            skip=arguments.skip or (),
            time_budget=arguments.time_budget,
            memory_budget=arguments.memory_budget,
            call_timeout=arguments.call_timeout,
            isolated=not arguments.in_process,
        )
    except (OptionError, PolicyNotFoundError) as error:
        raise UnusableInputError(str(error)) from error


def _with_imports(source: Source, arguments: argparse.Namespace) -> Source:
    """The source as it is named here, `--import` included, for commands that reproduce failures."""
    if source.arguments is None:
        words = [arguments.env, *(["--kwargs"] if arguments.kwargs else [])]
        words += [f"{name}={value}" for name, value in arguments.kwargs]
    else:
        words = list(source.arguments)
    imports = [word for module in arguments.imports for word in ("--import", module)]
    return replace(source, arguments=(words[0], *imports, *words[1:]))


def _run(suite: Suite, options: Options, progress: TextIO) -> ConformanceReport:
    results: list[CheckResult] = []
    for check in options.checks():
        results.append(suite.result(check))
        if not suite.made:
            raise UnusableInputError(f"{suite.source.name} cannot be made: {results[0].message}")
        if len(results) == 1:
            print(suite.report(results).header(), file=progress)
        print(results[-1], file=progress, flush=True)
    report = suite.report(results)
    print(report.summary(), file=progress)
    return report
