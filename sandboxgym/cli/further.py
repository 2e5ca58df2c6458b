"""Commands that other packages bring.

A package names its function `add_command(commands)` in the entry point group `sandboxgym.commands`,
under the name of the command. That is how the learners add theirs: this package never imports them.
Nothing of such a package is imported unless a command is asked for that is none of ours.
"""

from __future__ import annotations

import argparse
from importlib.metadata import EntryPoint, entry_points

from sandboxgym.cli.outcome import Commands, UnusableInputError

GROUP = "sandboxgym.commands"

OF_THE_LEARNERS = "view"
"""The command that is told of where it is missing too."""


def add_commands(commands: Commands) -> None:
    """Add the commands of other packages; those of a name that is taken are left out."""
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        if entry.name not in (commands.choices or ()):
            _add(commands, entry)
    if OF_THE_LEARNERS not in (commands.choices or ()):
        _add_refusal(
            commands,
            OF_THE_LEARNERS,
            f"the command {OF_THE_LEARNERS} comes with sandboxgym_learners, which is not installed "
            'here: pip install "sandboxgym[learners]" (a checkout that was installed before it '
            "had the command: pip install --no-deps -e . once more)",
        )


def _add(commands: Commands, entry: EntryPoint) -> None:
    try:
        add_command = entry.load()
    except Exception as error:  # noqa: BLE001 - whatever it is, the other commands go on working
        package = entry.dist.name if entry.dist is not None else entry.value
        reason = " ".join(str(error).split()) or type(error).__name__
        _add_refusal(
            commands,
            entry.name,
            f"the command {entry.name} of {package} cannot be loaded: {reason}",
        )
        return
    add_command(commands)


def _add_refusal(commands: Commands, name: str, reason: str) -> None:
    """A command that takes anything and says why it cannot be used."""
    command = commands.add_parser(
        name, help="cannot be used here: call it to see why", add_help=False, prefix_chars="\0"
    )
    command.add_argument("anything", nargs="*")

    def refuse(options: argparse.Namespace) -> int:
        raise UnusableInputError(reason)

    command.set_defaults(run=refuse)
