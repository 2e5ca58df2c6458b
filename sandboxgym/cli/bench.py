"""`sandboxgym bench`: what snapshot, restore and fork of an environment cost."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sandboxgym.cli import target
from sandboxgym.cli.measure import OPERATIONS, Costs, Spread, TooShortError, longest_walk, measure
from sandboxgym.cli.outcome import OK, Commands, UnusableInputError, require_writable, write_json
from sandboxgym.cli.units import digits, in_bytes, in_seconds, unit_of
from sandboxgym.conformance.source import AnyEnv
from sandboxgym.core import forking
from sandboxgym.core.snapshot import Fidelity
from sandboxgym.core.version import __version__

DEFAULT_DEPTHS = (1, 10, 50)
COLUMN = 24


def add_command(commands: Commands) -> None:
    """Add the command's parser."""
    command = commands.add_parser(
        "bench",
        help="measure what snapshot, restore and fork cost",
        description="Measure step, snapshot, restore, fork and replay of an environment at several "
        "depths of an episode with random actions: medians, with quartiles, of rounds in which "
        "each is done once.",
    )
    target.add_arguments(command)
    command.add_argument(
        "--depths",
        type=_depths,
        default=DEFAULT_DEPTHS,
        metavar="N,N,...",
        help="after how many steps to measure (default: 1,10,50)",
    )
    command.add_argument(
        "--seconds",
        type=target.seconds,
        default=5.0,
        metavar="S",
        help="how long to measure at each depth, about (default: %(default)g)",
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="SEED", help="of the episode (default: 0)"
    )
    command.add_argument(
        "--json",
        metavar="FILE",
        help="write the numbers as JSON to FILE, or to - (standard output)",
    )
    command.set_defaults(run=_bench)


def _bench(options: argparse.Namespace) -> int:
    progress = sys.stderr if options.json == "-" else sys.stdout
    require_writable(options.json)
    env = target.make_forkable(target.source_of(options))
    try:
        seed, actions = longest_walk(env, options.seed, max(options.depths))
        depths = sorted({min(depth, len(actions) - 1) for depth in options.depths})
        print(_account(options.env, env), file=progress, flush=True)
        if depths[-1] < max(options.depths):
            print(f"every episode that was tried ended by step {len(actions)}", file=progress)
        costs = [measure(env, seed, actions, depth, options.seconds) for depth in depths]
        fidelity = forking.Stack.of(env).base.fidelity
    except TooShortError as error:
        raise UnusableInputError(f"{options.env}: {error}") from error
    except Exception as error:
        raise UnusableInputError(
            f"{options.env} cannot be measured ({type(error).__name__}): {error}"
        ) from error
    finally:
        env.close()
    print(_table(costs), file=progress)
    print(_growth(fidelity, costs), file=progress)
    if options.json is not None:
        write_json(json.dumps(_report(options, seed, env, fidelity, costs), indent=2), options.json)
    return OK


def _account(name: str, env: AnyEnv) -> str:
    """Which mechanism was chosen, and why."""
    choice = getattr(env.unwrapped, "choice", None)
    mechanism = forking.Stack.of(env).base.fidelity.mechanism
    return f"{name} forks by {mechanism}, which is its own" if choice is None else str(choice)


def _table(costs: Sequence[Costs]) -> str:
    rows = [("\n", [f"at depth {cost.depth}" for cost in costs])]
    rows += [(name, [_time(cost, name) for cost in costs]) for name in OPERATIONS]
    rows.append(("size of a file", [_size(cost.file_bytes) for cost in costs]))
    rows.append(("memory held", [_size(cost.held_bytes) for cost in costs]))
    lines = [
        f"{title:<16}" + "".join(cell.rjust(COLUMN) for cell in cells) for title, cells in rows
    ]
    rounds = " and ".join(str(cost.times["restore"].rounds) for cost in costs)
    lines += [
        "",
        f"medians and quartiles of {rounds} rounds; memory for each snapshot that is held",
    ]
    for name, why in {name: why for cost in costs for name, why in cost.failures.items()}.items():
        lines.append(f"{name} is not possible: {why}")
    return "\n".join(lines)


def _growth(fidelity: Fidelity, costs: Sequence[Costs]) -> str:
    """How the cost of a restore depends on the depth."""
    measured = ", ".join(
        f"{in_seconds(cost.times['restore'].median)} at {cost.depth}" for cost in costs
    )
    if fidelity.cost == "constant":
        return f"restore does not depend on the depth by design; measured: {measured}"
    return f"restore is LINEAR IN THE DEPTH: it takes all actions again; measured: {measured}"


def _report(
    options: argparse.Namespace, seed: int, env: AnyEnv, fidelity: Fidelity, costs: Sequence[Costs]
) -> dict[str, Any]:
    choice = getattr(env.unwrapped, "choice", None)
    return {
        "env": options.env,
        "kwargs": dict(options.kwargs),
        "seed": seed,
        "mechanism": fidelity.mechanism,
        "fidelity": {**asdict(fidelity), "scope": sorted(fidelity.scope)},
        "why": "" if choice is None else choice.why,
        "rejected": [] if choice is None else [asdict(each) for each in choice.rejected],
        "versions": {"sandboxgym": __version__, "python": platform.python_version()},
        "machine": {"system": platform.platform(), "cpus": os.cpu_count()},
        "depths": [asdict(cost) for cost in costs],
    }


def _time(cost: Costs, operation: str) -> str:
    spread: Spread | None = cost.times.get(operation)
    if spread is None:
        return "not possible"
    unit, size = unit_of(spread.median)
    low, median, high = (digits(part / size) for part in (spread.low, spread.median, spread.high))
    return f"{median} ({low}-{high}) {unit}"


def _size(size: float | None) -> str:
    return "unknown" if size is None else in_bytes(size)


def _depths(text: str) -> tuple[int, ...]:
    try:
        depths = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form 1,10,50") from None
    if min(depths) < 0:
        raise argparse.ArgumentTypeError(f"{min(depths)} is less than 0")
    return depths
