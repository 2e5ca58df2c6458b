"""`sandboxgym list`: the environments that fork."""

from __future__ import annotations

import argparse

import gymnasium as gym

from sandboxgym.cli.outcome import OK, Commands
from sandboxgym.core.front import Forkable


def add_command(commands: Commands) -> None:
    """Add the command's parser."""
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
