"""`sandboxgym/StockALFWorld-v0`: ALFWorld's games on ALFWorld's own engine, forkable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal

from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.snapshot import Fidelity
from sandboxgym.sandboxes.text import alfworld_games as sources
from sandboxgym.sandboxes.text import dialogue
from sandboxgym.sandboxes.text.stock_engine import StockPosition, engine_for
from sandboxgym.sandboxes.text.synthetic import Difficulty


class StockALFWorldEnv(ForkableEnv[str, str]):
    """The games of `ALFWorldEnv`, on the engine that ALFWorld ships; slow, and good to compare.

    Observations, infos, rewards and options are those of `ALFWorldEnv`. Within one process,
    snapshots, restores and forks are immediate, at any depth. In another process, where the
    engine's numbering of states means nothing, the commands are played again.

    The engine evaluates expressions of the game file as Python: play only files that you trust.

    Args:
        split: "train", "valid_seen" or "valid_unseen".
        source: "real", or "synthetic" for generated houses.
        task_types: Only games of these types; None for all six.
        games_dir: The folder with ALFWorld's data; None for `$ALFWORLD_DATA`, or the folder that
            `alfworld-download` uses.
        game: Play this one file and no other.
        difficulty: Of generated houses, as for `ALFWorldEnv`.
        num_games: How many generated games the split has.
        render_mode: "ansi", or None.

    Raises:
        DataNotFoundError: The data, the split or the file does not exist.
        MissingDependencyError: ALFWorld's engine is not installed (at `reset`).
        GameFileError: The engine cannot load a game file (at `reset`).
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}
    state_is_witness: ClassVar[bool] = True

    def __init__(
        self,
        split: str = "train",
        *,
        source: Literal["real", "synthetic"] = "real",
        task_types: Sequence[str] | None = None,
        games_dir: str | Path | None = None,
        game: str | Path | None = None,
        difficulty: Difficulty | str = "normal",
        num_games: int | None = None,
        render_mode: Literal["ansi"] | None = None,
    ) -> None:
        sources.check_split(split)
        if source not in ("real", "synthetic"):
            raise ValueError(f"source={source!r}: choose among 'real', 'synthetic'")
        self.task_types = sources.check_task_types(task_types)
        self.split = split
        self.source = "file" if game is not None else source
        self.num_games = num_games
        self.render_mode = render_mode
        self.observation_space = dialogue.observations()
        self.action_space = dialogue.commands()
        self.difficulty = Difficulty.named(difficulty)
        self._games = sources.open_games(
            source,
            split,
            self.task_types,
            folder=games_dir,
            file=game,
            difficulty=self.difficulty,
            number=num_games,
        )
        self._name = ""
        self._position: StockPosition | None = None

    @property
    def games(self) -> Sequence[str]:
        """Names of all games, in the order of `options={"index": i}`."""
        return self._games.names

    @property
    def fidelity(self) -> Fidelity:
        """The planner's state in this process; elsewhere the recipe is played, and compared."""
        return Fidelity(mechanism="native")

    @property
    def _playing(self) -> StockPosition:
        assert self._position is not None, "the base class refuses to come here before a reset"
        return self._position

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a game: the one in `options`, or one drawn by the seed."""
        super().reset(seed=seed)
        name = sources.choose(self._games, self.split, options or {}, self.np_random)
        self._position = engine_for(self._games.text(name)).start
        self._name = name
        return self._playing.observation, self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Give a command."""
        command = dialogue.command_of(action)
        self._position = self._playing.engine.act(self._playing, command)
        won = self._playing.won
        return self._playing.observation, float(won), won, False, self._info()

    def render(self) -> str:
        """What the game said last."""
        return self._playing.observation

    def get_state(self) -> dict[str, Any]:
        """The game and all that holds in it: a witness, since the engine takes no facts."""
        position = self._playing
        return {
            "game": self._name,
            "content": position.engine.content,
            "facts": list(position.named_facts),
            "text": position.observation,
        }

    def hold(self) -> tuple[str, StockPosition]:
        """The position, which keeps the engine alive that understands it."""
        return self._name, self._playing

    def resume(self, held: Any) -> bool:
        """Go on from a position; never changes it."""
        self._name, self._position = held
        return True

    def spec_kwargs(self) -> dict[str, Any]:
        """What decides how the environment behaves; where its files lie does not."""
        return {
            "split": self.split,
            "source": self.source,
            "task_types": list(self.task_types),
            "difficulty": asdict(self.difficulty) if self.source == "synthetic" else None,
            "num_games": self.num_games,
        }

    def close(self) -> None:
        """End the episode and let go of the engine; the next one takes over its library."""
        self._record = None
        self._position = None

    def _info(self) -> dict[str, Any]:
        position = self._playing
        return {
            "admissible_commands": list(position.admissible_commands),
            "won": position.won,
            "game": self._name,
            "task_type": self._games.task_type(self._name),
        }
