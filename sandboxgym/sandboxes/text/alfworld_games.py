"""Where the games of ALFWorld come from: the real data, generated houses, or one file.

Each source lists its games by names that are the same on every machine, in a fixed order, and loads
a game by its name.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sandboxgym.core.errors import DataNotFoundError, InvalidOptionsError
from sandboxgym.sandboxes.text.engine import Game, load_game
from sandboxgym.sandboxes.text.synthetic import SPLITS, TASK_TYPES, Difficulty, split_game

DATA_VARIABLE = "ALFWORLD_DATA"
DATA_FOLDER = "json_2.1.1"
GAME_FILE = "game.tw-pddl"
SYNTHETIC_SIZES = {"train": 3553, "valid_seen": 140, "valid_unseen": 134}  # as the real splits

_UNSOLVABLE = re.compile(rb'(?<!\\)"solvable"\s*:\s*false')


class GameSource(Protocol):
    """A fixed, ordered list of games."""

    @property
    def names(self) -> Sequence[str]:
        """The games' names, sorted."""
        ...

    def has(self, name: str) -> bool:
        """Whether there is a game of this name."""
        ...

    def task_type(self, name: str) -> str:
        """Which type of task a game is."""
        ...

    def load(self, name: str) -> Game:
        """The compiled game; games in use are kept, so that this is cheap the second time."""
        ...

    def text(self, name: str) -> str:
        """What the game's file holds, for engines that compile it themselves."""
        ...


class RealGames:
    """The games of one split of ALFWorld's data that the benchmark counts."""

    def __init__(self, folder: Path, split: str, task_types: Sequence[str]) -> None:
        self.root = _data_root(folder, split)
        self._types = _listed(self.root, split, tuple(task_types))
        self.names = tuple(self._types)

    def has(self, name: str) -> bool:
        """Whether the benchmark counts a game of this name."""
        return name in self._types

    def task_type(self, name: str) -> str:
        """The type of task, which is how the game's folder begins."""
        return self._types[name]

    def load(self, name: str) -> Game:
        """Read the file and compile it."""
        return load_game(self.root / name)

    def text(self, name: str) -> str:
        """Read the file."""
        return (self.root / name).read_text("utf-8")


class SyntheticGames:
    """Generated games: game `i` of a split is the same on every machine."""

    def __init__(
        self, split: str, task_types: Sequence[str], difficulty: Difficulty | str, count: int | None
    ) -> None:
        self.split = split
        self.task_types = tuple(name for name in TASK_TYPES if name in task_types)
        self.difficulty = Difficulty.named(difficulty)
        number = SYNTHETIC_SIZES[split] if count is None else count
        self.names = _numbered(f"synthetic/{split}", number)

    def has(self, name: str) -> bool:
        """Whether the name's number is below the number of games."""
        prefix, _, number = name.rpartition("/")
        known = number.isdecimal() and int(number) < len(self.names)
        return known and prefix == f"synthetic/{self.split}"

    def task_type(self, name: str) -> str:
        """The type of task; the types take turns."""
        return self.task_types[self._index(name) % len(self.task_types)]

    def load(self, name: str) -> Game:
        """Generate the game and compile it."""
        return _generated(self.split, self._index(name), self.task_types, self.difficulty)

    def text(self, name: str) -> str:
        """Generate the game."""
        types, difficulty = self.task_types, self.difficulty
        made = split_game(self.split, self._index(name), task_types=types, difficulty=difficulty)
        return made.to_json()

    @staticmethod
    def _index(name: str) -> int:
        return int(name.rpartition("/")[2])


class OneGame:
    """A single game file."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise DataNotFoundError(f"no game file {path}: give the path of a {GAME_FILE}")
        self.path = path
        self.names = ("/".join(path.parts[-3:]),)

    def has(self, name: str) -> bool:
        """Whether it is this game's name."""
        return name in self.names

    def task_type(self, name: str) -> str:
        """The type of task, where the folder's name tells it, else "unknown"."""
        return _task_type_of(name, default="unknown")

    def load(self, name: str) -> Game:
        """Read the file and compile it."""
        return load_game(self.path)

    def text(self, name: str) -> str:
        """Read the file."""
        return self.path.read_text("utf-8")


def open_games(
    kind: str,
    split: str,
    task_types: Sequence[str],
    *,
    folder: str | Path | None = None,
    file: str | Path | None = None,
    difficulty: Difficulty | str = "normal",
    number: int | None = None,
) -> GameSource:
    """One file, or a split of the "real" or of the "synthetic" games."""
    if file is not None:
        return OneGame(Path(file))
    if kind == "synthetic":
        return SyntheticGames(split, task_types, difficulty, number)
    return RealGames(default_folder() if folder is None else Path(folder), split, task_types)


def choose(
    games: GameSource, split: str, options: dict[str, Any], generator: np.random.Generator
) -> str:
    """The name of the game that the options of a reset ask for, or one drawn.

    Raises:
        InvalidOptionsError: The options are not {"game": name} or {"index": i}.
        DataNotFoundError: There is no game of that name.
    """
    names = games.names
    unknown = set(options) - {"game", "index"}
    if unknown or len(options) > 1:
        raise InvalidOptionsError(
            f"options={options}: give one of {{'game': name}}, {{'index': i}}"
        )
    if "game" in options:
        if not isinstance(options["game"], str) or not games.has(options["game"]):
            raise DataNotFoundError(
                f"no game {options['game']!r} among the {len(names)} of {split}: see "
                "env.unwrapped.games"
            )
        return options["game"]
    if "index" in options:
        index = options["index"]
        if type(index) is bool or not isinstance(index, int | np.integer):
            raise InvalidOptionsError(f"options index={index!r}: give an int")
        if not 0 <= index < len(names):
            raise InvalidOptionsError(
                f"options index={index!r}: give an int from 0 to {len(names) - 1}"
            )
        return names[int(index)]
    return names[int(generator.integers(len(names)))]


def default_folder() -> Path:
    """Where ALFWorld's data is looked for: `$ALFWORLD_DATA`, or its usual cache folder."""
    return Path(os.environ.get(DATA_VARIABLE) or Path.home() / ".cache" / "alfworld").expanduser()


def has_split(folder: Path, split: str) -> bool:
    """Whether `folder` holds a split of ALFWorld's data."""
    return any((root / split).is_dir() for root in _roots(folder))


def check_split(split: str) -> None:
    """Refuse a split that ALFWorld does not have."""
    if split not in SPLITS:
        raise DataNotFoundError(f"no split {split!r}: choose among {', '.join(SPLITS)}")


def check_task_types(task_types: Sequence[str] | None) -> tuple[str, ...]:
    """The task types asked for, in a fixed order; all six for None."""
    if task_types is None:
        return tuple(TASK_TYPES)
    unknown = sorted(set(task_types) - set(TASK_TYPES))
    if unknown or not task_types or isinstance(task_types, str):
        raise ValueError(
            f"task_types={task_types!r}: give a list of one or more of {', '.join(TASK_TYPES)}"
        )
    return tuple(name for name in TASK_TYPES if name in task_types)


def _roots(folder: Path) -> tuple[Path, Path]:
    return folder / DATA_FOLDER, folder


def _data_root(folder: Path, split: str) -> Path:
    for root in _roots(folder):
        if (root / split).is_dir():
            return root
    raise DataNotFoundError(
        f"no ALFWorld data for the split {split!r} in {folder}: get it with `alfworld-download` "
        f"(pip install alfworld), point ${DATA_VARIABLE} or games_dir to its folder, or use the "
        "generated games with source='synthetic'"
    )


@functools.lru_cache(maxsize=32)
def _listed(root: Path, split: str, task_types: tuple[str, ...]) -> dict[str, str]:
    """Names, relative to the root, of the games that the benchmark counts, with their types."""
    types = {}
    for path in sorted((root / split).rglob(GAME_FILE)):
        name = path.relative_to(root).as_posix()
        task_type = _task_type_of(name)
        if "movable" in name or "Sliced" in name or task_type not in task_types:
            continue
        if _UNSOLVABLE.search(path.read_bytes()) is None:
            types[name] = task_type
    if not types:
        raise DataNotFoundError(
            f"{root / split} holds no solvable {GAME_FILE} of the types {', '.join(task_types)}"
        )
    return types


@functools.lru_cache(maxsize=32)
def _numbered(prefix: str, number: int) -> tuple[str, ...]:
    return tuple(f"{prefix}/{index:06d}" for index in range(number))


def _task_type_of(name: str, default: str = "") -> str:
    for part in name.split("/"):
        prefix = part.partition("-")[0]
        if prefix in TASK_TYPES:
            return prefix
    return default


@functools.lru_cache(maxsize=256)
def _generated(split: str, index: int, task_types: tuple[str, ...], difficulty: Difficulty) -> Game:
    made = split_game(split, index, task_types=task_types, difficulty=difficulty)
    return Game.from_json(made.to_json(), name=made.name)
