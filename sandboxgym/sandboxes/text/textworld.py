"""`sandboxgym/TextWorld-v0`: games that TextWorld made, on TextWorld's own engine.

TextWorld plays a game twice at once: Inform's story runs in the Z-machine and says what happens,
and a list of logical facts follows along to tell which commands are possible. Its `copy()` loads
the game anew for that. Here a state is the Z-machine's memory and the facts, both plain data.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal

from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import (
    DataNotFoundError,
    GameFileError,
    InvalidActionError,
    InvalidOptionsError,
    MissingDependencyError,
    SpecMismatchError,
)
from sandboxgym.core.rng import reseed_generator
from sandboxgym.sandboxes.text import charsets, frotz

_NAME = "tw-game"  # Jericho knows TextWorld's games by the beginning of their names
_ASKED = ("admissible_commands", "score", "max_score", "moves", "won", "lost")


class TextWorldEnv(ForkableEnv[str, str]):
    """A game of TextWorld: a story file (.z8) with the game's description (.json) beside it.

    The observation is what the game says; the action is a command. The reward is the gain in score.
    The episode terminates when the game is won, lost, or quit.

    Each info holds `admissible_commands` (sorted), `won`, `lost`, `score`, `max_score`, `moves`
    (commands that did something) and `game` (its name).

    A game is known by its description: the story file has the day of its compilation in it.
    In-game `save`, `restore`, `undo` and `script` fail, as on a machine without a disk.

    Args:
        game: The .z8 file.
        render_mode: "ansi", or None.

    Raises:
        MissingDependencyError: TextWorld is not installed.
        DataNotFoundError: One of the two files does not exist.
        GameFileError: One of the two files is damaged.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(self, game: str | Path, *, render_mode: Literal["ansi"] | None = None) -> None:
        _library()
        self.story = Path(game)
        self.render_mode = render_mode
        self.observation_space = charsets.observations()
        self.action_space = charsets.commands()
        self.description = _read_description(self.story)
        self._opened: Play | None = Play(self.story)
        self._text = ""
        self._score = 0

    @property
    def walkthrough(self) -> list[str]:
        """Commands that win the game from its start, where its maker left them."""
        return list(self.description.get("metadata", {}).get("walkthrough") or [])

    @property
    def name(self) -> str:
        """The game's name, the same wherever its file lies."""
        return str(self.description.get("metadata", {}).get("uuid") or self.content)

    @property
    def content(self) -> str:
        """A hash of the game's description."""
        text = json.dumps(self.description, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start the game."""
        if options:
            raise InvalidOptionsError(f"options={options}: a game of TextWorld takes none")
        super().reset(seed=seed)
        moment = self._fresh().start(frotz.seed_from(self.np_random))
        self._text, self._score = moment["feedback"], moment["score"]
        return self._text, self._info(moment)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Give a command."""
        if not isinstance(action, str):
            raise InvalidActionError(
                f"an action is a command as str, such as 'look'; got {type(action).__name__}"
            )
        before = self._score
        moment = self._play.act(action)
        self._text, self._score = moment["feedback"], moment["score"]
        ended = bool(moment["won"] or moment["lost"] or self._play.machine.halted)
        return self._text, float(self._score - before), ended, False, self._info(moment)

    def render(self) -> str:
        """What the game said last."""
        return self._text

    def reseed(self, seed: int) -> None:
        """Throw the game's dice anew too."""
        reseed_generator(self, seed)
        self._play.machine.reseed(frotz.seed_from(self.np_random))

    def get_state(self) -> dict[str, Any]:
        """The Z-machine, the facts, and what was said."""
        return {
            "story": self._play.story_hash,
            "play": self._play.get_state(),
            "text": self._text,
            "score": self._score,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue a game from a state of it.

        Raises:
            SpecMismatchError: The state is of the same game, compiled to another story.
        """
        play = self._fresh()
        if state["story"] != play.story_hash:
            raise SpecMismatchError(
                f"the state is of {self.name} compiled by another version of Inform: restore "
                "snapshot.drop_state(), which plays the commands again"
            )
        play.set_state(state["play"])
        self._text, self._score = state["text"], state["score"]

    def spec_kwargs(self) -> dict[str, Any]:
        """Which game, by its description; where its files lie does not matter."""
        return {"game": self.name, "content": self.content}

    def close(self) -> None:
        """Unload the interpreter and remove its files."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _play(self) -> Play:
        if self._opened is None:
            self._opened = Play(self.story)
        return self._opened

    def _fresh(self) -> Play:
        """The play, or a new one where the interpreter of the old one has halted."""
        if self._opened is not None and self._opened.machine.halted:
            self.close()
        return self._play

    def _info(self, moment: Any) -> dict[str, Any]:
        info = {key: moment[key] for key in ("won", "lost", "score", "max_score", "moves")}
        return info | {
            "admissible_commands": [str(command) for command in moment["admissible_commands"]],
            "game": self.name,
        }


class Play:
    """TextWorld's stack of wrappers around its interpreter, with its state at hand."""

    def __init__(self, story: Path) -> None:
        textworld = _library()
        frotz.check_story(story)
        self.story_hash = frotz.content_hash(story)
        # The interpreter opens the file again at every start, and ends the process if it is gone.
        self._folder = tempfile.TemporaryDirectory(prefix="sandboxgym-textworld-")
        copy = Path(self._folder.name) / f"{_NAME}.z8"
        try:
            shutil.copyfile(story, copy)
            shutil.copyfile(_description_of(story), copy.with_suffix(".json"))
            asked = textworld.EnvInfos(**dict.fromkeys(_ASKED, True))
            self._env = textworld.start(str(copy), asked)
        except Exception as error:
            self._folder.cleanup()
            raise GameFileError(
                f"TextWorld cannot load {story} ({type(error).__name__}: {error})"
            ) from error
        layers = {type(layer).__name__: layer for layer in _layers(self._env)}
        self._facts, self._inform = layers["StateTracking"], layers["Inform7Data"]
        self._interpreter = layers["JerichoEnv"]
        self.machine = frotz.Machine(self._interpreter._jericho)
        self._started = False

    def start(self, seed: int) -> Any:
        """Begin the game anew; returns TextWorld's account of the moment."""
        self.machine.seed(seed)
        self._started = True
        return self._env.reset()

    def act(self, command: str) -> Any:
        """Give a command; returns TextWorld's account of the moment."""
        moment, _, _ = self._env.step(self.machine.typed(command))
        return moment

    def get_state(self) -> dict[str, Any]:
        """The Z-machine, the facts, and the numbers carried from one moment to the next."""
        facts = [
            [str(fact.name), [[str(part.name), str(part.type)] for part in fact.arguments]]
            for fact in self._facts._game_progression.state.facts
        ]
        shown = self._inform.state
        return {
            "machine": self.machine.get_state(),
            "facts": sorted(facts),
            "effective": self._facts._moves,
            "carried": {key: shown.get(key) for key in self._inform._tracked_infos},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        from textworld.core import GameState
        from textworld.generator.game import GameProgression
        from textworld.logic import Proposition, State, Variable

        if not self._started:
            self.start(state["machine"]["dice"][-1])  # sets up what no state has to hold
        self.machine.set_state(state["machine"])
        game = self._facts._game
        progression = GameProgression(game, track_quests=False)
        progression.state = State(
            game.kb.logic,
            [
                Proposition(name, [Variable(*part) for part in arguments])
                for name, arguments in state["facts"]
            ],
        )
        progression._valid_actions = list(
            progression.state.all_applicable_actions(
                game.kb.rules.values(), game.kb.types.constants_mapping
            )
        )
        self._facts._game_progression = progression
        self._facts._moves = state["effective"]
        self._inform._tracked_infos = list(state["carried"])
        self._inform.state = GameState(state["carried"])

    def close(self) -> None:
        """Unload the interpreter and remove the folder."""
        self.machine.close()
        self._env.close()
        self._folder.cleanup()


def _library() -> Any:
    try:
        import textworld
    except ImportError as error:
        raise MissingDependencyError(
            'games of TextWorld need its library: pip install "sandboxgym[textworld]"'
        ) from error
    return textworld


def _description_of(story: Path) -> Path:
    return story.with_suffix(".json")


def _read_description(story: Path) -> dict[str, Any]:
    path = _description_of(story)
    if not story.is_file() or not path.is_file():
        raise DataNotFoundError(
            f"{story} and {path.name} have to lie beside each other: make such a game with "
            "`tw-make custom --output game.z8`"
        )
    try:
        description = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise GameFileError(f"{path} is not a game's description: {error}") from error
    if not isinstance(description, dict):
        raise GameFileError(f"{path} is not a game's description: it holds no object")
    return description


def _layers(env: Any) -> list[Any]:
    layers = [env]
    while "_wrapped_env" in vars(layers[-1]):
        layers.append(layers[-1]._wrapped_env)
    return layers
