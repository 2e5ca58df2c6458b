"""`sandboxgym list`: the registered environments, how they fork, and whether they work here."""

from __future__ import annotations

import argparse
import inspect
import json
import warnings
from dataclasses import asdict, dataclass

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator

from sandboxgym.cli import target
from sandboxgym.cli.outcome import OK, Commands
from sandboxgym.conformance.source import AnyEnv
from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import NotForkableError
from sandboxgym.core.front import Forkable
from sandboxgym.mechanisms.state_api import api_for

PROBED = "probed"


@dataclass(frozen=True)
class Entry:
    """One registered environment.

    Attributes:
        id: Its Gymnasium id.
        own: Whether it is one of this package, or was registered with `sandboxgym.register`.
        mechanism: How it forks; "probed" where `forkable` finds out by trying, "" where the
            environment cannot be made.
        usable: Whether it could be made here.
        missing: Where not, what is missing.
    """

    id: str
    own: bool
    mechanism: str
    usable: bool
    missing: str = ""


def add_command(commands: Commands) -> None:
    """Add the command's parser."""
    command = commands.add_parser(
        "list",
        help="show the registered environments, how they fork, and whether they work here",
        description="Show the registered environments: how each forks (by which mechanism, or "
        "'probed' where sandboxgym.forkable(env) finds out by trying), and whether it can be made "
        "here. Environments of other packages that cannot be made are left out.",
    )
    command.add_argument("--all", action="store_true", help="leave none out")
    command.add_argument("--json", action="store_true", help="print them as JSON")
    target.add_import(command)
    command.set_defaults(run=_list)


def _list(options: argparse.Namespace) -> int:
    target.import_modules(options)
    found = [_entry(spec) for _, spec in sorted(gym.registry.items())]
    shown = [entry for entry in found if options.all or entry.own or entry.usable]
    shown.sort(key=lambda entry: not entry.own)
    if options.json:
        print(json.dumps([asdict(entry) for entry in shown], indent=2))
        return OK
    width = max((len(entry.id) for entry in shown), default=0)
    for entry in shown:
        print(f"{entry.id:<{width}}  {entry.mechanism:<8} {entry.missing or 'usable'}")
    if len(shown) < len(found):
        print(f"({len(found) - len(shown)} more cannot be made here: --all shows why)")
    return OK


def _entry(spec: EnvSpec) -> Entry:
    own = spec.namespace == "sandboxgym" or Forkable.wrapper_spec() in spec.additional_wrappers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            env = gym.make(spec)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown
            return Entry(spec.id, own, "", False, _missing(spec, error))
        try:
            return Entry(spec.id, own, _mechanism(env), True)
        finally:
            env.close()


def _mechanism(env: AnyEnv) -> str:
    base = env.unwrapped
    if isinstance(base, ForkableEnv):
        return base.fidelity.mechanism
    try:
        return PROBED if api_for(base) is None else "native"
    except NotForkableError:
        return PROBED


def _missing(spec: EnvSpec, error: Exception) -> str:
    arguments = _required(spec) if isinstance(error, TypeError) else []
    if arguments:
        return "needs --kwargs " + " ".join(f"{name}=..." for name in arguments)
    return " ".join(str(error).split()) or type(error).__name__


def _required(spec: EnvSpec) -> list[str]:
    """The arguments that have no default and that the registration does not give."""
    entry = spec.entry_point
    maker = load_env_creator(entry) if isinstance(entry, str) else entry
    if maker is None:
        return []
    return [
        name
        for name, parameter in inspect.signature(maker).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and name not in spec.kwargs
    ]
