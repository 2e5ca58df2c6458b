"""`sandboxgym/ALFWorld-v0`: household tasks as text, on an engine that forks in microseconds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from gymnasium import spaces

from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import InvalidActionError, SpecMismatchError
from sandboxgym.sandboxes.text import alfworld_games as sources
from sandboxgym.sandboxes.text.engine import Game, Position
from sandboxgym.sandboxes.text.synthetic import Difficulty

_TEXT = "".join(map(chr, range(32, 127))) + "\n"
_OFF_WALKTHROUGH = -1


class ALFWorldEnv(ForkableEnv[str, str]):
    """ALFWorld's text games: find things in a house, clean, heat or cool them, put them somewhere.

    The observation is what the game says; the action is a command, spelled as in
    `info["admissible_commands"]` (surrounding space is ignored); any other command is answered by
    "Nothing happens." The reward is 1.0 when the task is done, which terminates the episode, and
    0.0 before. `gymnasium.make` adds the benchmark's limit of 50 steps.

    Each info holds `admissible_commands` (sorted list of str), `won` (bool), `game` (its name, the
    same on every machine), `task_type`, and `expert_plan` where asked for.

    `reset(seed=...)` draws a game from the environment's generator. `reset(options=...)` takes
    `{"game": name}` or `{"index": i}`, a position in `games`.

    Args:
        split: "train", "valid_seen" or "valid_unseen".
        source: "real" needs ALFWorld's data; "synthetic" generates houses; "auto" takes the real
            data where it is present, and otherwise says that it falls back to generated houses.
        task_types: Only games of these types; None for all six.
        games_dir: The folder with ALFWorld's data; None for `$ALFWORLD_DATA`, or the folder that
            `alfworld-download` uses.
        game: Play this one file and no other.
        difficulty: Of generated houses: a preset ("easy", "normal", "hard", "long"), or the knobs.
        num_games: How many generated games the split has; None for as many as the real split.
        expert_plan: Put into each info the commands that win from there: the rest of the file's
            walkthrough while it was followed, a planner's result elsewhere ([] where it finds
            none).
        render_mode: "ansi", or None.

    Raises:
        DataNotFoundError: The data, the split or the file does not exist.
        GameFileError: A game file is malformed (at `reset`).
        ValueError: An argument has no such value.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        split: str = "train",
        *,
        source: Literal["auto", "real", "synthetic"] = "auto",
        task_types: Sequence[str] | None = None,
        games_dir: str | Path | None = None,
        game: str | Path | None = None,
        difficulty: Difficulty | str = "normal",
        num_games: int | None = None,
        expert_plan: bool = False,
        render_mode: Literal["ansi"] | None = None,
    ) -> None:
        sources.check_split(split)
        self.task_types = sources.check_task_types(task_types)
        self.split = split
        self.difficulty = Difficulty.named(difficulty)
        self.num_games = num_games
        self.single_file = game is not None
        self.source = _resolved(source, split, games_dir) if game is None else "real"
        self.render_mode = render_mode
        self.with_plan = expert_plan
        self.observation_space = spaces.Text(max_length=20_000, min_length=0, charset=_TEXT)
        self.action_space = spaces.Text(max_length=200, min_length=0, charset=_TEXT)
        self._games = sources.open_games(
            self.source,
            split,
            self.task_types,
            folder=games_dir,
            file=game,
            difficulty=self.difficulty,
            number=num_games,
        )
        self._name = ""
        self._position: Position | None = None
        self._followed = 0

    @property
    def games(self) -> Sequence[str]:
        """Names of all games, in the order of `options={"index": i}`."""
        return self._games.names

    @property
    def game(self) -> Game:
        """The game being played."""
        return self._playing.game

    @property
    def _playing(self) -> Position:
        assert self._position is not None, "the base class refuses to come here before a reset"
        return self._position

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a game: the one in `options`, or one drawn by the seed."""
        super().reset(seed=seed)
        name = sources.choose(self._games, self.split, options or {}, self.np_random)
        self._position = self._games.load(name).start()
        self._name = name
        self._followed = 0
        return self._playing.observation, self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Give a command."""
        if not isinstance(action, str):
            raise InvalidActionError(
                f"an action is a command as str, such as 'look'; got {type(action).__name__}"
            )
        if not _is_unicode(action):
            raise InvalidActionError(f"the command {action!r} holds half a character (a surrogate)")
        position = self._playing
        self._follow(action.strip(), position.game.walkthrough)
        observation = position.act(action)
        won = position.won
        return observation, float(won), won, False, self._info()

    def render(self) -> str:
        """What the game said last."""
        return self._playing.observation

    def expert(self) -> list[str]:
        """Commands that win from here, or [] where none are found or the game is won."""
        position = self._playing
        if position.won:
            return []
        if self._followed != _OFF_WALKTHROUGH:
            return list(position.game.walkthrough[self._followed :])
        return position.plan() or []

    def get_state(self) -> dict[str, Any]:
        """The game's name and content hash, and the position in it."""
        position = self._playing
        return {
            "game": self._name,
            "content": position.game.digest,
            "position": position.get_state(),
            "followed": self._followed,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue a game from a position.

        Raises:
            SpecMismatchError: The game of that name is not here, or has other content.
        """
        name = state["game"]
        position = self._position
        if position is None or position.game.digest != state["content"] or self._name != name:
            position = self._loaded(name, state["content"]).start()
        position.set_state(state["position"])
        self._position, self._name, self._followed = position, name, state["followed"]

    def spec_kwargs(self) -> dict[str, Any]:
        """What decides how the environment behaves; where its files lie does not."""
        return {
            "split": self.split,
            "source": "file" if self.single_file else self.source,
            "task_types": list(self.task_types),
            "difficulty": asdict(self.difficulty) if self.source == "synthetic" else None,
            "num_games": self.num_games,
            "expert_plan": self.with_plan,
        }

    def _loaded(self, name: str, content: str) -> Game:
        if not self._games.has(name):
            raise SpecMismatchError(f"the snapshot plays {name!r}, which is not a game here")
        game = self._games.load(name)
        if game.digest != content:
            raise SpecMismatchError(
                f"the game {name!r} here has other content than the one of the snapshot"
            )
        return game

    def _follow(self, command: str, walkthrough: Sequence[str]) -> None:
        """Keep count of how far the walkthrough was followed without a detour."""
        at = self._followed
        if at != _OFF_WALKTHROUGH:
            on_it = at < len(walkthrough) and walkthrough[at] == command
            self._followed = at + 1 if on_it else _OFF_WALKTHROUGH

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {
            "admissible_commands": list(self._playing.admissible_commands),
            "won": self._playing.won,
            "game": self._name,
            "task_type": self._games.task_type(self._name),
        }
        if self.with_plan:
            info["expert_plan"] = self.expert()
        return info


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _resolved(source: str, split: str, games_dir: str | Path | None) -> str:
    """Decide between real and synthetic data, and say so where it was not asked for."""
    if source in ("real", "synthetic"):
        return source
    if source != "auto":
        raise ValueError(f"source={source!r}: choose among 'auto', 'real', 'synthetic'")
    if games_dir is not None or sources.has_split(sources.default_folder(), split):
        return "real"
    warnings.warn(
        f"no ALFWorld data in {sources.default_folder()}: playing generated houses. Get the real "
        "games with `alfworld-download`, or pass source='synthetic' to choose these",
        stacklevel=3,
    )
    return "synthetic"
