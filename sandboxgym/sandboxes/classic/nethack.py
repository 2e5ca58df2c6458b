"""NetHack (`nle`, the NetHack Learning Environment), with seeds that do what they say.

`reset(seed=...)` of NLE ignores the seed; its own `seed()` takes several, and has to be told not to
mix in true randomness. Phase of the moon, Friday the 13th and midnight come from the clock unless
they are derived from the seed.

NetHack keeps the levels that are not played at the moment in files, and reads its texts from one
file that stays open. The mechanism `process` gives each fork its own; `replay` needs none.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from sandboxgym.core.errors import MissingDependencyError

try:
    import nle.env.base
    import nle.env.tasks
except ImportError as error:
    raise MissingDependencyError(
        'the NetHack Learning Environment is not installed: pip install "sandboxgym[nle]"'
    ) from error

Observation = dict[str, Any]


class NetHackEnv(gym.Env[Observation, Any]):
    """A task of NLE, reproducible from `reset(seed=...)`.

    Args:
        task: Name of a class in `nle.env.tasks`, or "NLE".
        render_mode: As NLE has it ("human", "ansi", "full"), or None.
        **kwargs: Arguments of the task (`character`, `observation_keys`, `max_episode_steps`, ...).
    """

    def __init__(
        self, task: str = "NetHackScore", render_mode: str | None = None, **kwargs: Any
    ) -> None:
        kind = nle.env.base.NLE if task == "NLE" else getattr(nle.env.tasks, task)
        # Without recordings: they are files that grow with every step.
        self._game = kind(
            save_ttyrec_every=0, fix_moon_phase=True, render_mode=render_mode, **kwargs
        )
        self.render_mode = render_mode
        self.metadata = self._game.metadata
        self.action_space = self._game.action_space
        self.observation_space = self._game.observation_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start a game; without a seed, from ones that are drawn from `np_random`."""
        super().reset(seed=seed)
        core, display, levels = (int(number) for number in self.np_random.integers(2**31, size=3))
        self._game.seed(core=core, disp=display, reseed=False, lgen=levels)
        obs, info = self._game.reset(options=options)
        return _copied(obs), _plain(info)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        obs, reward, terminated, truncated, info = self._game.step(action)
        return _copied(obs), float(reward), bool(terminated), bool(truncated), _plain(info)

    def render(self) -> Any:
        """The terminal, as NLE renders it."""
        return self._game.render()

    def close(self) -> None:
        """End the game and remove its files."""
        self._game.close()


def _copied(obs: Observation) -> Observation:
    """NLE hands out the arrays that it writes the next observation into."""
    return {name: array.copy() for name, array in obs.items()}


def _plain(info: dict[str, Any]) -> dict[str, Any]:
    """How the game ended is an `enum` of NLE's: its name says the same."""
    return {**info, "end_status": info["end_status"].name}
