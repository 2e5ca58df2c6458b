"""Writes generated games to disk, laid out like the real data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from sandboxgym.sandboxes.text.synthetic.difficulty import Difficulty
from sandboxgym.sandboxes.text.synthetic.generate import GameFile, split_game


def write_game(folder: Path | str, game: GameFile) -> Path:
    """Write one game below ``folder`` and return the path of its ``game.tw-pddl``."""
    trial = Path(folder) / game.split / game.name
    trial.mkdir(parents=True, exist_ok=True)
    path = trial / "game.tw-pddl"
    path.write_text(game.to_json(), "utf-8")
    (trial / "traj_data.json").write_text(json.dumps(game.trajectory()), "utf-8")
    return path


def write_games(
    folder: Path | str,
    split: str,
    count: int,
    *,
    start: int = 0,
    task_types: Sequence[str] | None = None,
    difficulty: Difficulty | str = "normal",
) -> list[Path]:
    """Write the games ``start`` to ``start + count - 1`` of a split; return their paths in order.

    The folder can be given to this package's environment as ``games_dir`` and to ALFWorld's own
    code as a data path.

    Raises:
        ValueError: Fewer than one game, or a number below 0, or there are no such games.
    """
    if count < 1 or start < 0:
        raise ValueError(
            f"games={count}, start={start}: at least one game, and they are numbered from 0"
        )
    return [
        write_game(folder, split_game(split, index, task_types=task_types, difficulty=difficulty))
        for index in range(start, start + count)
    ]
