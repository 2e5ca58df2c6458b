"""`sandboxgym/Jericho-v0`: interactive fiction for the Z-machine, on Jericho's interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import InvalidActionError, InvalidOptionsError
from sandboxgym.core.rng import reseed_generator
from sandboxgym.sandboxes.text import charsets, frotz


class JerichoEnv(ForkableEnv[str, str]):
    """A Z-machine game (.z3, .z5, .z8), such as Zork, or one that TextWorld made.

    The observation is what the game prints; the action is a command line, of which the first 196
    printable ASCII characters count. Where the game waits for a key, the first one is pressed.
    The reward is the gain in score. The episode terminates when the game is won or lost.

    The info holds `game` (the file's name) and, of games that Jericho knows, `score`, `moves` and
    `won`. It knows some classics by their content, and TextWorld's games by a file name that begins
    with "tw-". Of other games nobody keeps the score, and they do not end.

    `reset(seed=...)` seeds the game's dice; `reset(options={"dice": n})` gives the interpreter the
    seed n itself, such as the one that goes with a published walkthrough.

    In-game `save`, `restore`, `undo` and `script` fail, as on a machine without a disk.

    Args:
        game: The story file.
        render_mode: "ansi", or None.

    Raises:
        MissingDependencyError: Jericho is not installed.
        DataNotFoundError: There is no such file.
        GameFileError: The file is not a story.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(self, game: str | Path, *, render_mode: Literal["ansi"] | None = None) -> None:
        self.story = Path(game)
        self.render_mode = render_mode
        self.observation_space = charsets.observations()
        self.action_space = charsets.commands()
        self._opened: frotz.Machine | None = frotz.open_story(self.story)
        self.supported = bool(self._opened.frotz.is_fully_supported)
        self.content = frotz.content_hash(self.story)
        self._text = ""
        self._score = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start the game."""
        super().reset(seed=seed)
        dice = _dice_of(options or {})
        self._text = self._fresh().start(frotz.seed_from(self.np_random) if dice is None else dice)
        self._score = self._machine.frotz.get_score()
        return self._text, self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Type a command."""
        if not isinstance(action, str):
            raise InvalidActionError(
                f"an action is a command as str, such as 'look'; got {type(action).__name__}"
            )
        machine, before = self._machine, self._score
        self._text, _, ended, _ = machine.frotz.step(machine.typed(action))
        self._score = machine.frotz.get_score()
        return self._text, float(self._score - before), bool(ended), False, self._info()

    def render(self) -> str:
        """What the game printed last."""
        return self._text

    def reseed(self, seed: int) -> None:
        """Throw the game's dice anew too."""
        reseed_generator(self, seed)
        self._machine.reseed(frotz.seed_from(self.np_random))

    def get_state(self) -> dict[str, Any]:
        """The Z-machine, and what it said."""
        return {
            "content": self.content,
            "machine": self._machine.get_state(),
            "text": self._text,
            "score": self._score,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue a game from a state of it."""
        self._fresh().set_state(state["machine"])
        self._text, self._score = state["text"], state["score"]

    def spec_kwargs(self) -> dict[str, Any]:
        """Which game, by its content; where its file lies does not matter."""
        return {"game": self.story.name, "content": self.content, "supported": self.supported}

    def close(self) -> None:
        """Unload the interpreter."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _machine(self) -> frotz.Machine:
        if self._opened is None:
            self._opened = frotz.open_story(self.story)
        return self._opened

    def _fresh(self) -> frotz.Machine:
        """The machine, or a new one where a crash left the old one in an unknown condition."""
        if self._opened is not None and self._opened.halted:
            self.close()
        return self._machine

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"game": self.story.name}
        if self.supported:
            game = self._machine.frotz
            info |= {"score": self._score, "moves": game.get_moves(), "won": bool(game.victory())}
        return info


def _dice_of(options: dict[str, Any]) -> int | None:
    """The interpreter's seed where the options give one."""
    if not options:
        return None
    dice = options.get("dice")
    if set(options) != {"dice"} or type(dice) is not int or not 1 <= dice < 2**31:
        raise InvalidOptionsError(
            f"options={options}: give {{'dice': n}} with n from 1 to 2**31 - 1 (the interpreter "
            "takes 0 for the clock)"
        )
    return dice
