"""``python -m sandboxgym.sandboxes.text.synthetic``: write generated games to a folder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from sandboxgym.sandboxes.text.synthetic.difficulty import PRESETS, Difficulty
from sandboxgym.sandboxes.text.synthetic.scenes import SPLITS
from sandboxgym.sandboxes.text.synthetic.tasks import TASK_TYPES
from sandboxgym.sandboxes.text.synthetic.write import write_games


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the games that the command line asks for."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        difficulty = _difficulty(options)
        paths = write_games(
            options.out,
            options.split,
            options.games,
            start=options.start,
            task_types=options.task_types,
            difficulty=difficulty,
        )
    except (ValueError, OSError) as error:
        parser.error(str(error))
    print(f"{len(paths)} games in {options.out / options.split}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sandboxgym.sandboxes.text.synthetic",
        description="Write generated household games, laid out like ALFWorld's own data.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--split", choices=SPLITS, default="train")
    parser.add_argument("--games", type=int, default=100, help="how many (default: %(default)s)")
    parser.add_argument("--start", type=int, default=0, help="number of the first game")
    parser.add_argument("--task-types", nargs="+", choices=list(TASK_TYPES), metavar="TYPE")
    parser.add_argument("--difficulty", choices=list(PRESETS), default="normal")
    knobs = parser.add_argument_group("knobs", "override single knobs of the difficulty")
    knobs.add_argument("--receptacles", type=int, nargs=2, metavar=("FEWEST", "MOST"))
    knobs.add_argument("--distractors", type=int)
    knobs.add_argument("--closed", type=float, help="share of receptacles with a door")
    knobs.add_argument("--lookalikes", type=int, help="closed receptacles of one kind")
    knobs.add_argument("--hidden", type=float, help="how often the target starts behind a door")
    knobs.add_argument("--closed-goal", type=float, help="how often the goal has a door")
    knobs.add_argument("--errands", type=int, help="objects to carry first")
    return parser


def _difficulty(options: argparse.Namespace) -> Difficulty:
    given = {
        knob.name: getattr(options, knob.name)
        for knob in fields(Difficulty)
        if getattr(options, knob.name) is not None
    }
    if "receptacles" in given:
        given["receptacles"] = tuple(given["receptacles"])
    return replace(PRESETS[options.difficulty], **given)


if __name__ == "__main__":
    raise SystemExit(main())
