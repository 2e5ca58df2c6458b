"""`sandboxgym check`: run the conformance suite on an environment."""

from __future__ import annotations

import argparse
import sys

from sandboxgym.cli import target
from sandboxgym.cli.outcome import FAILED, OK, Commands, write_json
from sandboxgym.conformance.checks import CHECKS
from sandboxgym.conformance.runner import DEFAULT_DEPTH, DEFAULT_SEEDS, Suite


def add_command(commands: Commands) -> None:
    """Add the command's parser."""
    command = commands.add_parser(
        "check",
        help="find out whether an environment forks exactly",
        description="Run the conformance suite on an environment. Exit status: 0 where no check "
        "failed, 1 where one did, 2 where the environment could not be made.",
    )
    target.add_arguments(command)
    command.add_argument(
        "--json", metavar="FILE", help="write the report as JSON to FILE, or to - (standard output)"
    )
    command.add_argument(
        "--seeds",
        type=target.positive,
        default=len(DEFAULT_SEEDS),
        metavar="N",
        help="how many seeds to record episodes with (default: %(default)s)",
    )
    command.add_argument(
        "--depth",
        type=target.positive,
        default=DEFAULT_DEPTH,
        metavar="N",
        help="how many steps to record of each episode (default: %(default)s)",
    )
    command.set_defaults(run=_check)


def _check(options: argparse.Namespace) -> int:
    source = target.source_of(options)
    target.make(source).close()
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
        write_json(report.to_json(), options.json)
    return OK if report.ok else FAILED
