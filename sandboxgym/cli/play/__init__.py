"""`sandboxgym play`: play an environment in the terminal, with time travel."""

from __future__ import annotations

import argparse
import importlib.util
import sys

from sandboxgym.cli import target
from sandboxgym.cli.outcome import OK, Commands, UnusableInputError
from sandboxgym.cli.play.timeline import Timeline
from sandboxgym.core.errors import SandboxGymError


def add_command(commands: Commands) -> None:
    """Add the command's parser."""
    command = commands.add_parser(
        "play",
        help="play an environment in the terminal, with time travel",
        description="Play an environment in the terminal: step, undo, fork, compare, save.",
    )
    target.add_arguments(command)
    command.add_argument("--seed", type=int, default=0, help="of the first episode (default: 0)")
    command.add_argument("--load", metavar="FILE", help="start from this snapshot")
    command.set_defaults(run=_play)


def _play(options: argparse.Namespace) -> int:
    if importlib.util.find_spec("textual") is None:
        raise UnusableInputError('play needs Textual: pip install "sandboxgym[play]"')
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UnusableInputError("play needs a terminal: standard input or output is none")
    env = target.make_forkable(target.source_of(options))
    try:
        timeline = Timeline(env, options.seed)
        if options.load is not None:
            timeline.load(options.load)
    except (SandboxGymError, OSError) as error:
        env.close()
        raise UnusableInputError(f"{options.env} cannot be played: {error}") from error
    from sandboxgym.cli.play.app import PlayApp

    try:
        PlayApp(timeline, options.env).run()
    finally:
        env.close()
    return OK
