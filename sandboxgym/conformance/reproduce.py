"""What to type to see a failure again, alone."""

from __future__ import annotations

import shlex
from typing import Any

from sandboxgym.conformance import policies
from sandboxgym.conformance.options import DEFAULT_CALL_TIMEOUT, Options
from sandboxgym.conformance.report import CheckResult
from sandboxgym.conformance.source import Source


def reproduction(source: Source, options: Options, failure: CheckResult) -> str:
    """A command where a new process can find all that it needs, else lines of Python."""
    seeds = list(options.seeds) if failure.seed not in options.seeds else [failure.seed]
    command = _command(source, options, failure.number, seeds)
    return command or _lines(source, options, failure.number, seeds)


def _command(source: Source, options: Options, number: str, seeds: list[Any]) -> str | None:
    if source.arguments is None:
        return None
    words = ["sandboxgym", "check", *source.arguments, "--only", number]
    for seed in seeds:
        words += ["--seed", str(seed)]
    words += ["--depth", str(options.depth)]
    if options.policy is not None:
        policy = policies.name_of(options.player)
        if policy is None:
            return None
        words += ["--policy", policy]
    if options.call_timeout != DEFAULT_CALL_TIMEOUT:
        words += ["--call-timeout", f"{options.call_timeout:g}"]
    return shlex.join(words)


def _lines(source: Source, options: Options, number: str, seeds: list[Any]) -> str:
    arguments = [f"only=[{number!r}]", f"seeds={seeds}", f"depth={options.depth}"]
    if source.kwargs:
        arguments.append(f"kwargs={source.kwargs!r}")
    if options.policy is not None:
        arguments.append(f"policy={getattr(options.policy, '__name__', 'policy')}")
    if options.call_timeout != DEFAULT_CALL_TIMEOUT:
        arguments.append(f"call_timeout={options.call_timeout:g}")
    return (
        "from sandboxgym.conformance import check_forkable\n"
        f"print(check_forkable({source.expression}, {', '.join(arguments)}))"
    )
