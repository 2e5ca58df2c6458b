"""Playing a scratch instance with random actions, and comparing exactly what it shows."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import RecordEpisodeStatistics

from sandboxgym.core import forking
from sandboxgym.core.digest import first_difference
from sandboxgym.core.errors import SandboxGymError
from sandboxgym.core.plain import owned
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.mechanisms.twins import AnyEnv

Seen: TypeAlias = dict[str, Any]
"""What a reset, a restore or a step returned, by name."""

_NAMES = ("obs", "reward", "terminated", "truncated", "info")
_TRIES = 5


class NotExactError(Exception):
    """A candidate did not do what it has to do; the message says what."""


@dataclass(frozen=True)
class Move:
    """One thing done to an environment: a step, or a reset without a seed."""

    action: Any = None
    is_reset: bool = False


class Player:
    """Plays one environment. All that it shows is copied; what follows the clock is left out."""

    def __init__(self, env: AnyEnv) -> None:
        self.env = env
        self._timed = _keys_of_times(env)

    def reset(self, seed: int | None) -> Seen:
        """Start an episode."""
        return self._seen(self.env.reset(seed=seed))

    def make(self, move: Move) -> Seen:
        """Make a move."""
        return self.reset(None) if move.is_reset else self._seen(self.env.step(owned(move.action)))

    def restore(self, snapshot: Snapshot) -> Seen:
        """Return to a moment."""
        return self._seen(forking.restore(self.env, snapshot))

    def explore(self, seen: Seen, steps: int, rng: np.random.Generator) -> tuple[list[Any], str]:
        """Step with random actions.

        Args:
            seen: What was seen last; what is seen later goes to `self.trace`.
            steps: How many at most.
            rng: Draws the actions.

        Returns:
            The actions that were taken, and the error that ended it before its time, or "".
        """
        self.trace: list[Seen] = []
        actions: list[Any] = []
        space = copy.deepcopy(self.env.action_space)
        space.seed(int(rng.integers(2**31)))
        while len(actions) < steps and not ended(seen):
            try:
                action, seen = self._try_some(seen, space, rng)
            except Exception as error:  # noqa: BLE001 - a random action may break anything
                return actions, f"{type(error).__name__}: {error}"
            actions.append(action)
            self.trace.append(seen)
        return actions, ""

    def _try_some(
        self, seen: Seen, space: gym.Space[Any], rng: np.random.Generator
    ) -> tuple[Any, Seen]:
        """Take a random action; where one is refused, another."""
        for left in reversed(range(_TRIES)):
            action = owned(_random_action(seen, space, rng), "action")
            try:
                return action, self.make(Move(action))
            except SandboxGymError:
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    def _seen(self, result: Sequence[Any]) -> Seen:
        names = ("obs", "info") if len(result) == 2 else _NAMES
        seen = {name: owned(value, name) for name, value in zip(names, result, strict=True)}
        for key in self._timed & seen["info"].keys():
            seen["info"][key].pop("t", None)
        return seen


def ended(seen: Seen) -> bool:
    """Whether an episode is over."""
    return bool(seen.get("terminated") or seen.get("truncated"))


def expect(expected: Any, found: Any, where: str) -> None:
    """Raise unless two things are exactly equal.

    Raises:
        NotExactError: They differ; the message has the first difference.
    """
    difference = first_difference(expected, found)
    if difference is not None:
        raise NotExactError(f"{where}: {difference}")


def _random_action(seen: Seen, space: gym.Space[Any], rng: np.random.Generator) -> Any:
    commands = seen["info"].get("admissible_commands")
    if commands:
        return commands[int(rng.integers(len(commands)))]
    return space.sample()


def _keys_of_times(env: AnyEnv) -> set[str]:
    keys = set()
    while isinstance(env, gym.Wrapper):
        if isinstance(env, RecordEpisodeStatistics):
            keys.add(env._stats_key)
        env = env.env
    return keys
