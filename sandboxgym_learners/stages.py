"""Where episodes are played: environments that can be forked, one after the other or at once.

`HereStage` keeps them in this process, which is fastest where a step takes microseconds.
`PoolStage` steps them at once in the workers of a `sandboxgym.ForkPool`: for repositories and
browsers, where a step waits for another program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import gymnasium as gym

import sandboxgym as sg

Stepped = tuple[Any, Any, bool, bool, dict[str, Any]]
"""What `step` of an environment returns."""


class Stage(Protocol):
    """Environments, each called by a number while it is in use."""

    def reset(
        self, seed: int, options: dict[str, Any] | None, *, fresh: int
    ) -> tuple[int, Any, dict[str, Any]]:
        """Start an episode; `fresh` seeds what happens in it from then on."""

    def step(self, actions: Mapping[int, Any]) -> dict[int, Stepped]:
        """Take an action in each of some environments."""

    def fork(self, number: int, seeds: Sequence[int]) -> list[int]:
        """One more environment for each seed, in the same state but for its randomness."""

    def release(self, number: int) -> None:
        """The episode has ended."""

    def close(self) -> None:
        """Close all environments."""


class HereStage:
    """Environments in this process, used again for the next episode."""

    def __init__(self, make: Callable[[], gym.Env[Any, Any]]) -> None:
        self._make = make
        self._envs: list[gym.Env[Any, Any]] = []
        self._idle: list[int] = []

    def reset(
        self, seed: int, options: dict[str, Any] | None, *, fresh: int
    ) -> tuple[int, Any, dict[str, Any]]:
        """Start an episode; see `Stage`."""
        if not self._idle:
            self._add(self._make() if not self._envs else sg.fork(self._envs[0], 1)[0])
        number = self._idle.pop()
        env = self._envs[number]
        observation, info = env.reset(seed=seed, options=options)
        sg.restore(env, sg.snapshot(env), seed=fresh)
        return number, observation, info

    def step(self, actions: Mapping[int, Any]) -> dict[int, Stepped]:
        """Take an action in each of some environments."""
        return {number: self._envs[number].step(action) for number, action in actions.items()}

    def fork(self, number: int, seeds: Sequence[int]) -> list[int]:
        """One more environment for each seed; see `Stage`."""
        moment = sg.snapshot(self._envs[number])
        forks = []
        for seed in seeds:
            if not self._idle:  # a fork shares what environments can share, such as a browser
                self._add(sg.fork(self._envs[number], 1)[0])
            forks.append(self._idle.pop())
            sg.restore(self._envs[forks[-1]], moment, seed=seed)
        return forks

    def release(self, number: int) -> None:
        """The episode has ended."""
        self._idle.append(number)

    def close(self) -> None:
        """Close all environments."""
        while self._envs:
            self._envs.pop().close()
        self._idle.clear()

    def _add(self, env: gym.Env[Any, Any]) -> None:
        self._envs.append(env)
        self._idle.append(len(self._envs) - 1)


class PoolStage:
    """Lanes of a pool of processes."""

    def __init__(self, make: Callable[[], gym.Env[Any, Any]], *, lanes: int, workers: int) -> None:
        self.pool = sg.ForkPool(make, lanes, workers=workers)

    def reset(
        self, seed: int, options: dict[str, Any] | None, *, fresh: int
    ) -> tuple[int, Any, dict[str, Any]]:
        """Start an episode; see `Stage`."""
        lane = self.pool.take()
        observation, info = self.pool.reset(lane, seed=seed, options=options)
        self.pool.restore(lane, self.pool.snapshot(lane), seed=fresh)
        return lane, observation, info

    def step(self, actions: Mapping[int, Any]) -> dict[int, Stepped]:
        """Take an action in each of some lanes, all at once."""
        return {lane: tuple(seen) for lane, seen in self.pool.step(actions).items()}

    def fork(self, number: int, seeds: Sequence[int]) -> list[int]:
        """One more lane for each seed."""
        return self.pool.branch(number, len(seeds), seeds=seeds)

    def release(self, number: int) -> None:
        """The episode has ended."""
        self.pool.release(number)

    def close(self) -> None:
        """End the workers."""
        self.pool.close()
