"""`copy`: an environment that `copy.deepcopy` copies faithfully is held as such copies.

Only where a probe proved it faithful: an environment may share state through its class, a module or
a file, and an `EzPickle` one is silently replaced by a new one. What is not in the objects of the
environment is not captured; that includes the global generators of `random` and `numpy.random`,
which belong to the whole process and which no environment may rewind for all others.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
from gymnasium.utils import EzPickle

from sandboxgym.core.errors import UncapturedStateError
from sandboxgym.core.snapshot import Fidelity
from sandboxgym.mechanisms.foreign import ForeignEnv
from sandboxgym.mechanisms.twins import AnyEnv


class CopyEnv(ForeignEnv):
    """Wraps a Gymnasium environment; snapshots hold a deep copy of it, wrappers included."""

    def hold(self) -> Copied:
        """Copy the environment inside.

        Raises:
            UncapturedStateError: It cannot be copied.
        """
        return Copied(_copied(self.env), self._seen)

    def resume(self, held: Copied) -> bool:
        """Continue with a copy of what is held. What is replaced is left to the garbage collector.

        It is not closed: closing may free what copies share, such as a window.
        """
        self.env, self._seen = _copied(held.env), held.seen
        self.action_space = self.env.action_space
        self.observation_space = self.env.observation_space
        return True

    @property
    def fidelity(self) -> Fidelity:
        """Memory of the environment's own objects; elsewhere, if its recipe can be replayed."""
        return Fidelity(mechanism="copy", portable=self.recipe_replays)


@dataclass(frozen=True)
class Copied:
    """A copy of an environment that nobody steps, and the hash of what it had returned."""

    env: AnyEnv
    seen: str


def obstacle_to_copying(env: AnyEnv) -> str | None:
    """Why `copy.deepcopy` of an environment or of a wrapper of it is known to be no copy."""
    while True:
        cls: Any = type(env)
        if (
            isinstance(env, EzPickle)
            and cls.__getstate__ is EzPickle.__getstate__
            and not hasattr(cls, "__deepcopy__")
        ):
            return f"{cls.__name__} is an EzPickle, so copy.deepcopy makes a new one instead"
        if not isinstance(env, gym.Wrapper):
            return None
        env = env.env


def _copied(env: AnyEnv) -> AnyEnv:
    try:
        return copy.deepcopy(env)
    except Exception as error:
        raise UncapturedStateError(
            f"{env} cannot be copied ({type(error).__name__}: {error}): use "
            "sandboxgym.forkable(env, mechanism='process') or 'replay'"
        ) from error
