"""Round trips: fork an environment at random depths, and compare with one that is never forked.

The twin is the plain environment, without any of our code. Both take the same random actions. At
random moments the environment is snapshotted; it wanders off and is restored, or the snapshot is
restored in a second environment that was somewhere else, or goes there as bytes, or is forked.
Then all of them and the twin go on with the same actions, and everything that they return has to
be equal, to the last bit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

import sandboxgym
from sandboxgym.conformance.policies import random_policy
from sandboxgym.core.digest import first_difference
from sandboxgym.core.plain import owned
from sandboxgym.core.snapshot import Snapshot

AnyEnv = gym.Env[Any, Any]

# Fewer of each where episodes are kept short, because a step or a reset takes long.
GAP = 12  # at most so many steps between two trips
AWAY = 8  # at most so many steps away, before a restore
TOGETHER = 6  # so many steps are compared after a restore


@dataclass
class Tally:
    """What became of the round trips of one environment.

    Attributes:
        round_trips: How many were made.
        deepest: The depth of the deepest fork.
        silent: Where something differed and nobody said so.
        refused: How often a named error refused, by its name and message.
    """

    round_trips: int = 0
    deepest: int = 0
    silent: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


class Traveller:
    """An environment, a second one, and the twin that is never forked."""

    def __init__(self, env: AnyEnv, other: AnyEnv, twin: AnyEnv, depth: int, seed: int) -> None:
        self.env, self.other, self.twin = env, other, twin
        self.depth = depth
        self.gap, self.away, self.together = (
            min(GAP, depth // 2),
            min(AWAY, depth // 3),
            min(TOGETHER, depth // 3),
        )
        self.rng = np.random.default_rng(seed)
        self.space = twin.action_space
        self.space.seed(seed)
        self.tally = Tally()
        self._results: dict[int, Any] = {}
        self._wander(other)
        self._new_episode()

    def trip(self) -> None:
        """One round trip."""
        self._go_on(int(self.rng.integers(1, self.gap + 1)))
        trips = (self._there_and_back, self._into_another, self._as_bytes, self._by_fork)
        portable = self.env.unwrapped.fidelity.mechanism == "native"
        chances = (0.45, 0.45, 0.05, 0.05) if portable else (0.5, 0.48, 0.0, 0.02)
        self.tally.deepest = max(self.tally.deepest, self.steps)
        try:
            trips[int(self.rng.choice(4, p=chances))]()
        except sandboxgym.SandboxGymError as error:
            self.tally.refused[f"{type(error).__name__}: {error}"] += 1
            self._new_episode()
        self.tally.round_trips += 1

    def _there_and_back(self) -> None:
        moment = sandboxgym.snapshot(self.env)
        self._wander(self.env)
        self._restore(self.env, moment)
        self._together([self.env])

    def _into_another(self) -> None:
        self._continue_in(self.other, sandboxgym.snapshot(self.env))

    def _as_bytes(self) -> None:
        data = sandboxgym.snapshot(self.env).to_bytes()
        self._continue_in(self.other, Snapshot.from_bytes(data))

    def _by_fork(self) -> None:
        (child,) = sandboxgym.fork(self.env, 1)
        try:
            self._together([self.env, child])
        finally:
            child.close()

    def _continue_in(self, other: AnyEnv, moment: Snapshot) -> None:
        self._wander(other)
        self._restore(other, moment)
        self._together([self.env, other])

    def _restore(self, env: AnyEnv, moment: Snapshot) -> None:
        obs, _, _, _, info = self.last
        self._compare("restore", sandboxgym.restore(env, moment), (obs, info))

    def _together(self, envs: list[AnyEnv]) -> None:
        """Step some environments and the twin alike, and compare."""
        for _ in range(self.together):
            if self._over():
                break
            action = self._action(self.last)
            self.last = self._step(self.twin, action)
            for env in envs:
                self._compare("step", self._step(env, action), self.last)
            self.steps += 1
        if self._over():
            self._new_episode()

    def _go_on(self, steps: int) -> None:
        for _ in range(steps):
            if self._over() or self.steps >= self.depth:
                self._new_episode()
            action = self._action(self.last)
            self.last = self._step(self.twin, action)
            self._compare("step", self._step(self.env, action), self.last)
            self.steps += 1
        if self._over():  # a trip of no steps would compare nothing
            self._new_episode()

    def _wander(self, env: AnyEnv) -> None:
        """Take an environment somewhere else."""
        last = self._results.get(id(env))
        for _ in range(int(self.rng.integers(self.away + 1))):
            if last is None or last[2] or last[3]:
                seed = int(self.rng.integers(2**31))
                obs, info = env.reset(seed=seed)
                last = (obs, 0.0, False, False, info)
            last = self._step(env, self._action(last))

    def _new_episode(self) -> None:
        seed = int(self.rng.integers(2**31))
        obs, info = owned(self.twin.reset(seed=seed))
        self.last = (obs, 0.0, False, False, info)
        self.steps = 0
        self._compare("reset", self.env.reset(seed=seed), (obs, info))
        self._results[id(self.env)] = self.last

    def _over(self) -> bool:
        return bool(self.last[2] or self.last[3])

    def _action(self, last: tuple[Any, ...]) -> Any:
        return random_policy(last[0], last[4], self.space, self.rng)

    def _step(self, env: AnyEnv, action: Any) -> tuple[Any, ...]:
        obs, reward, terminated, truncated, info = owned(env.step(action))
        result = (obs, reward, bool(terminated), bool(truncated), info)
        self._results[id(env)] = result
        return result

    def _compare(self, where: str, found: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
        difference = first_difference(list(owned(found)), list(expected))
        if difference is not None:
            trip = self.tally.round_trips
            self.tally.silent.append(f"trip {trip}, depth {self.steps}, {where}: {difference}")
