"""`sandboxgym doctor`: what can be used on this machine, and what would make the rest usable.

Everything is really tried, with a time limit; nothing asks a question and nothing stays changed.
"""

from __future__ import annotations

import argparse
import json
import platform
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict

from sandboxgym.cli.doctor import kernel, packages, programs
from sandboxgym.cli.doctor.finding import Finding, System
from sandboxgym.cli.outcome import FAILED, OK, Commands, UnusableInputError
from sandboxgym.core.version import __version__

PROBES: tuple[Callable[[System], Finding], ...] = (
    kernel.fork_server,
    kernel.user_namespaces,
    kernel.overlay,
    kernel.bubblewrap,
    programs.docker,
    programs.podman,
    programs.browser,
    programs.java,
    programs.gpu,
    kernel.disk,
    packages.alfworld_data,
)


def add_command(commands: Commands) -> None:
    """Add the command's parser."""
    command = commands.add_parser(
        "doctor",
        help="show what this machine can do, and how to make it do the rest",
        description="Try what environments may need here. Exit status: 0, or 1 where something "
        "that --need names cannot be used.",
    )
    command.add_argument("--json", action="store_true", help="print the findings as JSON")
    command.add_argument(
        "--need",
        action="append",
        default=[],
        metavar="NAME",
        help="exit with 1 where NAME, out of the names that are printed, cannot be used (may be "
        "given again)",
    )
    command.set_defaults(run=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    system = System.here()
    if not options.json:
        user = "root" if system.root else "not root"
        python = platform.python_version()
        print(f"sandboxgym {__version__}, Python {python}, {system.title}, {user}\n", flush=True)
    findings = []
    for finding in _findings(system):
        findings.append(finding)
        if not options.json:
            print(_told(finding), flush=True)
    if options.json:
        told = {"system": asdict(system), "findings": [asdict(finding) for finding in findings]}
        print(json.dumps(told, indent=2))
    names = {finding.name: finding.usable for finding in findings}
    unknown = [name for name in options.need if name not in names]
    if unknown:
        raise UnusableInputError(
            f"--need {unknown[0]}: there is no such thing; the names are {', '.join(names)}"
        )
    return OK if all(names[name] for name in options.need) else FAILED


def _findings(system: System) -> Iterator[Finding]:
    for probe in PROBES:
        yield probe(system)
    yield from packages.extras(system)


def _told(finding: Finding) -> str:
    mark = "ok" if finding.usable else "--"
    what = textwrap.fill(
        finding.what, 100, initial_indent=f"{mark}  {finding.name:<24}", subsequent_indent=" " * 28
    )
    return f"{what}\n{' ' * 28}$ {finding.fix}" if finding.fix else what
