"""The Arcade Learning Environment (`ale-py`): a game console, captured with `ALEInterface`.

Three things stand between `cloneState(include_rng=True)` and an exact fork.

1. With sticky actions (`repeat_action_probability`, 0.25 in the v5 environments) the console goes
   on with the action that it *last carried out*, and that action is in no state of ALE's. So the
   console here runs without sticky actions, and `Console` makes them outside, from the same random
   numbers as ALE would have drawn: seeded episodes are, frame by frame, those of plain ALE.
2. The two picture buffers are not in the state either. A frame with fewer lines than the screen
   shows leaves old lines standing. Games that do so often are refused; in the others the two
   frames after a restore are watched.
3. A game that computes for long leaves a frame half done, which the state does not tell. Such a
   moment is refused.
"""

from __future__ import annotations

import re
import struct
from typing import Any, ClassVar

import numpy as np

from sandboxgym.core.errors import RestoreMismatchError, SnapshotCorruptError, UncapturedStateError
from sandboxgym.core.rng import reseed_generator
from sandboxgym.mechanisms.state_api import StateApi

# Games that, played at random, show frames with too few lines or leave frames half done.
IRREGULAR_PICTURE = frozenset(
    {
        "alien",
        "amidar",
        "koolaid",
        "krull",
        "qbert",
        "tetris",
        "tic_tac_toe_3d",
        "trondead",
        "video_chess",
        "video_checkers",
    }
)

_INSTEAD = "use sandboxgym.forkable(env, mechanism='process')"


class AtariState(StateApi):
    """State of `ale_py.AtariEnv`: the console as ALE's own bytes, and the action that sticks."""

    packages: ClassVar[tuple[str, ...]] = ("ale-py",)
    # ALE would go on with its generator and its frame number, which no recipe leads to.
    draws_seeds: ClassVar[bool] = True

    def attach(self, env: Any) -> None:
        """Put `Console` in front of the environment's console."""
        if isinstance(env.ale, Console):
            raise UncapturedStateError("this AtariEnv is forkable already")
        env.ale = Console(env.ale)
        env.load_game()  # ALE looks at its settings when it loads a game

    def get(self, env: Any) -> dict[str, Any]:
        """The console's state, and the action that sticks."""
        console: Console = env.ale
        state = console.capture()
        if _frame_is_partial(state):
            raise UncapturedStateError(
                f"{env._game} is in the middle of a frame, and a state of ALE's does not say so: "
                f"take the snapshot a step later, or {_INSTEAD}"
            )
        action, strength = console.sticking
        return {"console": state, "sticks": [int(action.value), float(strength)]}

    def set(self, env: Any, state: dict[str, Any]) -> None:
        """Load the console's state; the two frames that follow are watched."""
        console: Console = env.ale
        action, strength = state["sticks"]
        console.load(state["console"])
        console.sticking = (_action(action), strength)

    def reseed(self, env: Any, seed: int) -> None:
        """Start the generators of frame skipping and of sticky actions anew."""
        reseed_generator(env, seed)
        console: Console = env.ale
        console.draw_anew(seed)

    def refuse(self, env: Any) -> str | None:
        """Refuse games and options of which the console's state says too little."""
        if env._game in IRREGULAR_PICTURE:
            return f"{env._game} shows lines of earlier frames, which ALE leaves out of its states"
        if env.sound_obs:
            return "sound_obs=True: ALE leaves the sound that is under way out of its states"
        if env.ale.getBool("color_averaging"):
            return "color_averaging mixes frames, which ALE leaves out of its states"
        if env.ale.getInt("frame_skip") != 1:
            return "ALE's own frame_skip is set: use the frameskip of the environment"
        return None


class Console:
    """An `ALEInterface` whose sticky actions are made out here, where they can be captured.

    Everything else is handed through to ALE.

    Args:
        ale: The console; its sticky actions are switched off.

    Attributes:
        sticking: The action that was last carried out, and its strength.
    """

    def __init__(self, ale: Any) -> None:
        self._ale = ale
        # Of 32-bit numbers, as many are under it as ALE takes for "go on with the last action".
        self._repeat_below = ale.getFloat("repeat_action_probability") * 2.0**32
        ale.setFloat("repeat_action_probability", 0.0)
        self._random = np.random.MT19937(0)
        self._frames_to_watch = 0
        self._shape: int | None = None
        self.sticking: tuple[Any, float] = (_action(0), 1.0)

    def __getattr__(self, name: str) -> Any:
        """Whatever ALE offers besides."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._ale, name)

    def reset_game(self) -> None:
        """Start an episode, with nothing pressed. It may draw from ALE's generator."""
        self._ale.reset_game()
        self._follow(self.capture())
        self._frames_to_watch = 0
        self.sticking = (_action(0), 1.0)

    def act(self, action: Any, strength: float = 1.0) -> int:
        """Carry out an action for one frame, or the last one once more.

        ALE draws twice for each frame, for two players.
        """
        if self._random.random_raw(2)[0] >= self._repeat_below:
            self.sticking = (action, strength)
        reward: int = self._ale.act(*self.sticking)
        if self._frames_to_watch:
            self._frames_to_watch -= 1
            self._check_picture()
        return reward

    def restoreState(self, state: Any) -> None:  # noqa: N802 - ALE's name
        """Refused: it would leave the action that sticks behind."""
        raise UncapturedStateError(
            "a state of ALE's lacks the action that sticks: use sandboxgym.restore"
        )

    def capture(self) -> bytes:
        """ALE's state as bytes, its generator included."""
        state: bytes = self._ale.cloneState(include_rng=True).__getstate__()
        return state

    def load(self, state: bytes) -> None:
        """Put such bytes back, and make sure that ALE took them."""
        here = self.capture()
        if self._shape is None:
            self._shape = _shape(here)
        if _shape(state) != self._shape:
            raise SnapshotCorruptError("these bytes are not a state of this game")
        if _frame_is_partial(here):
            self._finish_frame()
        self._ale.restoreState(_ale_state(state))
        if self.capture() != state:
            raise RestoreMismatchError("ALE did not take the state that it was given")
        self._follow(state)
        self._frames_to_watch = 2

    def draw_anew(self, seed: int) -> None:
        """Start the generator of sticky actions anew."""
        generator = np.random.MT19937(seed).state["state"]
        numbers = [*generator["key"].tolist(), generator["pos"]]
        state = _with_generator(self.capture(), " ".join(map(str, numbers)).encode())
        self._ale.restoreState(_ale_state(state))
        self._follow(state)

    def _follow(self, state: bytes) -> None:
        """Bring the generator out here to where ALE's own is."""
        numbers = np.array(_generator(state).split(), dtype=np.uint32)
        self._random.state = {
            "bit_generator": "MT19937",
            "state": {"key": numbers[:-1], "pos": int(numbers[-1])},
        }

    def _finish_frame(self) -> None:
        """Let the game end a frame that is half done, which a restore would not end."""
        for _ in range(1000):
            self._ale.act(_action(0))
            if not _frame_is_partial(self.capture()):
                return
        raise UncapturedStateError(f"this game is in the middle of a frame for good: {_INSTEAD}")

    def _check_picture(self) -> None:
        first_line, lines = _FIRST_LINE, self._ale.getScreenDims()[0]
        drawn, _ = _frame(self.capture())
        if drawn < first_line + lines:
            raise UncapturedStateError(
                f"soon after a restore this game shows a frame of {drawn} lines, so that lines of "
                f"earlier frames stay visible, which ALE leaves out of its states: {_INSTEAD}"
            )


# ALE's bytes: six numbers, the console with the length before it, two numbers. The console ends with
# the generator of sticky actions, as text: 624 numbers and a position, with the length before it.
_CONSOLE_LENGTH = struct.calcsize("<6i")
_TAIL = struct.calcsize("<2i")
_GENERATOR = re.compile(rb"(?:\d+ ){624}\d+")
_FIRST_LINE = 34  # of a frame, that the screen shows
_TIA = struct.pack("<i", 3) + b"TIA"


def _frame(state: bytes) -> tuple[int, int]:
    """How many lines the last finished frame had, and the last one, finished or not.

    They are the sixth and the seventh number of the video chip (TIA).
    """
    last, current = struct.unpack_from("<2i", state, state.index(_TIA) + len(_TIA) + 20)
    return last, current


def _frame_is_partial(state: bytes) -> bool:
    last, current = _frame(state)
    return last != current


def _shape(state: bytes) -> int:
    """What is equal in all states of one game: the size of what is no generator."""
    return len(_GENERATOR.sub(b"", state))


def _generator(state: bytes) -> bytes:
    """The generator of sticky actions."""
    start = state.rindex(b"\0", 0, len(state) - _TAIL) + 1
    return state[start:-_TAIL]


def _with_generator(state: bytes, text: bytes) -> bytes:
    """The same state with another generator of sticky actions."""
    grown = len(text) - len(_generator(state))
    (length,) = struct.unpack_from("<i", state, _CONSOLE_LENGTH)
    return b"".join(
        (
            state[:_CONSOLE_LENGTH],
            struct.pack("<i", length + grown),
            state[_CONSOLE_LENGTH + 4 : -_TAIL - len(_generator(state)) - 4],
            struct.pack("<i", len(text)),
            text,
            state[-_TAIL:],
        )
    )


def _action(number: int) -> Any:
    from ale_py import Action

    return Action(number)


def _ale_state(state: bytes) -> Any:
    from ale_py import ALEState

    return ALEState(state)
