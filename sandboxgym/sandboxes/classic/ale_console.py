"""`Console`: a console of ALE that is captured and put back exactly, or says that it cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np

from sandboxgym.core.errors import RestoreMismatchError, SnapshotCorruptError, UncapturedStateError
from sandboxgym.sandboxes.classic.ale_bytes import (
    frame_is_partial,
    generator_state,
    lines_drawn,
    size_without_generators,
    with_generator,
)

INSTEAD = "use sandboxgym.forkable(env, mechanism='process')"

_FIRST_LINE = 34  # of a frame, that the screen shows
_WATCHED = 2  # frames after a restore: as many as there are picture buffers


class Console:
    """An `ALEInterface` whose sticky actions are made out here, where they can be captured.

    Everything else is handed through to ALE.

    Args:
        ale: The console; its sticky actions are switched off.

    Attributes:
        repeat_action_probability: How often an action sticks.
        sticking: The action that was last carried out, and its strength.
    """

    def __init__(self, ale: Any) -> None:
        self._ale = ale
        # Of 32-bit numbers, as many are under it as ALE takes for "go on with the last action".
        self.repeat_action_probability: float = ale.getFloat("repeat_action_probability")
        self._repeat_below = self.repeat_action_probability * 2.0**32
        ale.setFloat("repeat_action_probability", 0.0)
        self._random = np.random.MT19937(0)
        self._frames_to_watch = 0
        self._size: int | None = None
        self._elsewhere: bytes | None = None
        self.sticking: tuple[Any, float] = (action_of(0), 1.0)

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
        self.sticking = (action_of(0), 1.0)

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

    def getScreen(self, *buffer: Any) -> Any:  # noqa: N802 - ALE's name
        """The picture, as numbers of colours."""
        self._check_picture_is_of_now()
        return self._ale.getScreen(*buffer)

    def getScreenRGB(self, *buffer: Any) -> Any:  # noqa: N802 - ALE's name
        """The picture, in colours."""
        self._check_picture_is_of_now()
        return self._ale.getScreenRGB(*buffer)

    def getScreenGrayscale(self, *buffer: Any) -> Any:  # noqa: N802 - ALE's name
        """The picture, in grey."""
        self._check_picture_is_of_now()
        return self._ale.getScreenGrayscale(*buffer)

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
        if self._size is None:
            self._size = size_without_generators(here)
        if size_without_generators(state) != self._size:
            raise SnapshotCorruptError("these bytes are not a state of this game")
        if frame_is_partial(here):
            self._finish_frame()
        self._check_nothing_shines_through(state, here)
        self._ale.restoreState(_ale_state(state))
        if self.capture() != state:
            raise RestoreMismatchError("ALE did not take the state that it was given")
        self._follow(state)
        self._frames_to_watch = _WATCHED

    def draw_anew(self, seed: int) -> None:
        """Start the generator of sticky actions anew."""
        state = with_generator(self.capture(), np.random.MT19937(seed))
        self._ale.restoreState(_ale_state(state))
        self._follow(state)

    def _follow(self, state: bytes) -> None:
        """Bring the generator out here to where ALE's own is."""
        self._random.state = generator_state(state)

    def _check_nothing_shines_through(self, state: bytes, here: bytes) -> None:
        """Look at what follows a state where the console comes from two different moments."""
        if self._elsewhere is None:
            self._elsewhere = self._another_moment()
        after = [self._what_follows(state, moment) for moment in (here, self._elsewhere)]
        if after[0] != after[1]:
            raise UncapturedStateError(
                "what this moment leads to depends on what the console did before, which ALE "
                "leaves out of its states: restore snapshot.drop_state(), which replays, or "
                f"{INSTEAD}"
            )

    def _what_follows(self, state: bytes, moment: bytes) -> list[bytes]:
        """The picture and the state a frame after `state`, in a console that was at `moment`."""
        for at in (moment, state):
            self._ale.restoreState(_ale_state(at))
            self._ale.act(action_of(0))
        if self._ale.game_over():  # then no frame was made
            return []
        return [self._ale.getScreen().tobytes(), self.capture()]

    def _another_moment(self) -> bytes:
        """Some moment of the game: two seconds after its start, the first actions pressed."""
        self._ale.reset_game()
        for frame in range(120):
            self._ale.act(action_of(frame // 10 % 6))
        return self.capture()

    def _finish_frame(self) -> None:
        """Let the game end a frame that is half done, which a restore would not end."""
        for _ in range(1000):
            self._ale.act(action_of(0))
            if not frame_is_partial(self.capture()):
                return
        raise UncapturedStateError(f"this game is in the middle of a frame for good: {INSTEAD}")

    def _check_picture_is_of_now(self) -> None:
        if self._frames_to_watch == _WATCHED:
            raise UncapturedStateError(
                "ALE leaves the picture out of its states, so there is none until the first step "
                f"after a restore; the observation of the moment is in the snapshot. Or {INSTEAD}"
            )

    def _check_picture(self) -> None:
        drawn, _ = lines_drawn(self.capture())
        if drawn < _FIRST_LINE + self._ale.getScreenDims()[0]:
            raise UncapturedStateError(
                f"soon after a restore this game shows a frame of {drawn} lines, so that lines of "
                f"earlier frames stay visible, which ALE leaves out of its states: {INSTEAD}"
            )


def action_of(number: int) -> Any:
    """The action that ALE gives a number."""
    from ale_py import Action

    return Action(number)


def _ale_state(state: bytes) -> Any:
    from ale_py import ALEState

    return ALEState(state)
