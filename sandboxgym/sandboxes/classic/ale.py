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
   moment is refused. So are the games of which ALE does not save all that it knows.

And what nobody knows of yet: at each restore it is tried out whether the next frame is the same
after the console was at two different moments.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sandboxgym.core.digest import first_difference
from sandboxgym.core.errors import UncapturedStateError
from sandboxgym.core.rng import reseed_generator
from sandboxgym.mechanisms.state_api import StateApi
from sandboxgym.sandboxes.classic.ale_bytes import frame_is_partial
from sandboxgym.sandboxes.classic.ale_console import INSTEAD, Console, action_of

# Games that, played at random, show frames with too few lines or leave frames half done.
IRREGULAR_PICTURE = frozenset(
    {
        "alien",
        "amidar",
        "journey_escape",
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

# Games of whose score, sprites or cartridge ALE 0.12 leaves a part out of its states, or rounds it.
INCOMPLETE_STATE = frozenset(
    {"chopper_command", "hangman", "miniature_golf", "pitfall2", "video_cube", "yars_revenge"}
)

_TOLD = (
    "_game_mode",
    "_game_difficulty",
    "_obs_type",
    "continuous",
    "continuous_action_threshold",
)


class AtariState(StateApi):
    """State of `ale_py.AtariEnv`: the console as ALE's own bytes, and the action that sticks."""

    state_version: ClassVar[int] = 2
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
        if frame_is_partial(state):
            raise UncapturedStateError(
                f"{env._game} is in the middle of a frame, and a state of ALE's does not say so: "
                f"take the snapshot a step later, or {INSTEAD}"
            )
        action, strength = console.sticking
        return {
            "console": state,
            "sticks": [int(action.value), float(strength)],
            "settings": _settings(env),
        }

    def set(self, env: Any, state: dict[str, Any]) -> None:
        """Load the console's state; the two frames that follow are watched."""
        console: Console = env.ale
        difference = first_difference(state["settings"], _settings(env))
        if difference is not None:
            raise UncapturedStateError(
                f"the settings of this AtariEnv are not those that the state was captured with "
                f"({difference}): give both to gymnasium.make, or pass forkable(env, factory=...)"
            )
        action, strength = state["sticks"]
        console.load(state["console"])
        console.sticking = (action_of(action), strength)

    def reseed(self, env: Any, seed: int) -> None:
        """Start the generators of frame skipping and of sticky actions anew."""
        reseed_generator(env, seed)
        console: Console = env.ale
        console.draw_anew(seed)

    def refuse(self, env: Any) -> str | None:
        """Refuse games and options of which the console's state says too little."""
        if env._game in IRREGULAR_PICTURE:
            return f"{env._game} shows lines of earlier frames, which ALE leaves out of its states"
        if env._game in INCOMPLETE_STATE:
            return f"ALE leaves a part of {env._game} out of its states"
        if env.sound_obs:
            return "sound_obs=True: ALE leaves the sound that is under way out of its states"
        if env.ale.getBool("color_averaging"):
            return "color_averaging mixes frames, which ALE leaves out of its states"
        if env.ale.getInt("frame_skip") != 1:
            return "ALE's own frame_skip is set: use the frameskip of the environment"
        return None


def _settings(env: Any) -> dict[str, Any]:
    """What the environment was told to do, which may be changed after it was built."""
    console: Console = env.ale
    skip = env._frameskip
    return {
        "frameskip": skip if isinstance(skip, int) else list(skip),
        "repeat_action_probability": console.repeat_action_probability,
        **{name: getattr(env, name) for name in _TOLD},
    }
