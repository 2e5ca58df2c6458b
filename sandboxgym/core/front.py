"""The outermost wrapper of registered environments: the contract's methods on `gym.make`'s result.

Gymnasium's wrappers do not pass attributes through, so `gym.make(...).snapshot()` works only where
the outermost wrapper has that method.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, TypeVar

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import Autoreset

from sandboxgym.core import forking, wrappers
from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import EpisodeEndedError, NotResetError, StateEncodingError
from sandboxgym.core.snapshot import Fidelity, Snapshot, Transition

ObsType = TypeVar("ObsType")
ActType = TypeVar("ActType")


class Forkable(gym.Wrapper[ObsType, ActType, ObsType, ActType], RecordConstructorArgs):
    """Gives a stack of wrappers around a `ForkableEnv` the methods of a `ForkableEnv`."""

    def __init__(self, env: gym.Env[ObsType, ActType]) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        inner = forking.Stack.of(env)
        self._layers, self._base = inner.layers, inner.base
        self._base._outermost = weakref.ref(self)
        self._resets_itself = any(isinstance(layer, Autoreset) for layer in self._layers)
        self._watches = not inner.recomputable
        if self._watches:
            # What the wrappers returned before is not known here, so the next reset comes first.
            self._base._record = None
        self._ended = False

    @property
    def base(self) -> ForkableEnv[ObsType, ActType]:
        """The environment below all wrappers."""
        return self._base

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Start an episode; where that fails, the wrappers' counters stay as they were."""
        before = [wrappers.capture(layer) for layer in self._layers]
        try:
            obs, info = self.env.reset(seed=seed, options=options)
        except BaseException:
            for layer, saved in zip(self._layers, before, strict=True):
                wrappers.apply(layer, saved)
            raise
        self._ended = False
        self._watch(Transition(obs, 0.0, False, False, info))
        return obs, info

    def step(self, action: ActType) -> tuple[ObsType, Any, bool, bool, dict[str, Any]]:
        """Take an action.

        Refused before the first reset, and after the end of an episode unless an `Autoreset` below
        starts the next one.
        """
        if self.base._record is None:
            raise NotResetError(f"{self.base.sandbox_spec.id}: call reset() before step()")
        if self._ended and not self._resets_itself:
            raise EpisodeEndedError(
                f"{self.base.sandbox_spec.id}: the episode has ended; call reset(), or restore a "
                "snapshot"
            )
        result = self.env.step(action)
        self._ended = bool(result[2] or result[3])
        self._watch(Transition(*result))
        return result

    def _watch(self, last: Transition) -> None:
        """Remember what the wrappers returned, where they do not keep it themselves."""
        record = self.base._record
        if not self._watches or record is None:
            return
        try:
            record.show(self, last.copy())
        except StateEncodingError as error:  # it is no fault of the episode; a snapshot raises it
            record.show(self, error)

    def snapshot(self) -> Snapshot:
        """Capture this moment, all wrappers below included; see `sandboxgym.snapshot`."""
        return forking.snapshot(self)

    def restore(
        self,
        snapshot: Snapshot,
        *,
        seed: int | None = None,
        verify: bool | None = None,
        rewind_statistics: bool = False,
    ) -> tuple[ObsType, dict[str, Any]]:
        """Return to the moment of a snapshot; see `sandboxgym.restore`."""
        return forking.restore(
            self, snapshot, seed=seed, verify=verify, rewind_statistics=rewind_statistics
        )

    def fork(
        self, n: int, *, seeds: Sequence[int] | None = None
    ) -> list[Forkable[ObsType, ActType]]:
        """Make `n` live environments in this state; see `sandboxgym.fork`."""
        return forking.fork(self, n, seeds=seeds)

    def state_digest(self) -> str:
        """Canonical hash of the present state; equal digests mean equal futures."""
        return forking.state_digest(self)

    @property
    def fidelity(self) -> Fidelity:
        """What a snapshot captures, and how."""
        return self.base.fidelity

    @property
    def choice(self) -> Any:
        """How `sandboxgym.forkable` came to make it, or None; print it."""
        return self.base.choice

    @property
    def metrics(self) -> dict[str, float]:
        """Counters and times of this instance; never part of a snapshot."""
        return self.base.metrics
