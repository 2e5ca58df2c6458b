"""`sandboxgym/TextWorldExpress-v0`: TextWorld's best-known games, generated and played quickly."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from sandboxgym.core.errors import InvalidOptionsError, MissingDependencyError
from sandboxgym.sandboxes.text import dialogue
from sandboxgym.sandboxes.text.java_game import NO_LIMIT, JavaGameEnv

GAMES = (
    "cookingworld",
    "twc",
    "coin",
    "mapreader",
    "arithmetic",
    "sorting",
    "simonsays",
    "peckingorder",
)


class TextWorldExpressEnv(JavaGameEnv):
    """A generated game: cooking, tidying up, looking for a coin, sorting, and so on.

    The observation is what the game answers; the action is a command. The reward is the gain in
    score, which is 1.0 when all is done. The episode terminates when the game is won or lost;
    `gymnasium.make` adds the usual limit of 100 steps.

    Each info holds `admissible_commands` (sorted), `task_description`, `look` and `inventory`
    (texts), `score`, `moves`, `won`, `lost`, `game` and `game_seed`.

    `reset(seed=...)` draws a game of the split; `reset(options={"game_seed": n})` chooses one.

    A fork plays the commands again in a Java machine of its own. The library's own `clone()` does
    so too, but of a game that it drew itself it does not know the seed, and plays another.

    Args:
        game: One of "cookingworld", "twc", "coin", "mapreader", "arithmetic", "sorting",
            "simonsays", "peckingorder".
        split: "train", "dev" or "test": which games are drawn.
        params: The generator's parameters, such as "numLocations=5,includeDoors=1".
        render_mode: "ansi", or None.

    Raises:
        MissingDependencyError: TextWorld-Express or Java is not installed.
        ValueError: There is no such game or split; at `reset`, no such parameter.
    """

    def __init__(
        self,
        game: str = "cookingworld",
        split: Literal["train", "dev", "test"] = "train",
        *,
        params: str = "",
        render_mode: Literal["ansi"] | None = None,
    ) -> None:
        super().__init__(split, render_mode)
        _require_library()
        if game not in GAMES:
            raise ValueError(f"game={game!r}: choose among {', '.join(GAMES)}")
        self.game = game
        self.params = params
        self._game_seed = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Generate a game and start it."""
        super().reset(seed=seed)
        self._game_seed = self._chosen(options or {})
        self._text, moment = self.library.reset(
            seed=self._game_seed, gameFold=self.split, gameName=self.game, gameParams=self.params
        )
        info = self._info(moment)
        self._seen = ""
        self._saw(self._text, info)
        return self._text, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Give a command."""
        command = dialogue.command_of(action)
        self._text, reward, ended, moment = self.library.step(command)
        info = self._info(moment)
        self._saw(command, self._text, float(reward), bool(ended), info)
        return self._text, float(reward), bool(ended), False, info

    def _launch(self) -> Any:
        import textworld_express

        return textworld_express.TextWorldExpressEnv(envStepLimit=NO_LIMIT)

    def _tidy(self, library: Any) -> None:
        library._obj_tree_tempfile.close()

    def _info(self, moment: dict[str, Any]) -> dict[str, Any]:
        return {
            "admissible_commands": sorted(moment["validActions"]),
            "task_description": moment["taskDescription"],
            "look": moment["look"],
            "inventory": moment["inventory"],
            "score": float(moment["score"]),
            "moves": int(moment["numMoves"]),
            "won": bool(moment["tasksuccess"]),
            "lost": bool(moment["taskfailure"]),
            "game": self.game,
            "game_seed": self._game_seed,
        }

    def _chosen(self, options: dict[str, Any]) -> int:
        if set(options) - {"game_seed"}:
            raise InvalidOptionsError(f"options={options}: give {{'game_seed': n}}")
        if "game_seed" not in options:
            seeds = {
                "train": self.library.getValidSeedsTrain,
                "dev": self.library.getValidSeedsDev,
                "test": self.library.getValidSeedsTest,
            }[self.split]()
            return int(seeds[int(self.np_random.integers(len(seeds)))])
        chosen = options["game_seed"]
        if isinstance(chosen, bool) or not isinstance(chosen, int | np.integer):
            raise InvalidOptionsError(f"options game_seed={chosen!r}: give an int")
        if not 0 <= chosen < 2**31:
            raise InvalidOptionsError(f"options game_seed={chosen!r}: give one from 0 to 2**31 - 1")
        return int(chosen)


def _require_library() -> None:
    try:
        import textworld_express  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            'TextWorld-Express is not installed: pip install "sandboxgym[textworld-express]"'
        ) from error
