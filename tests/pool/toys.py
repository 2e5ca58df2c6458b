"""Environments for pools: a walk with luck in it, that crashes, hangs and refuses when asked to."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import sandboxgym as sg
from sandboxgym.core.errors import InvalidActionError


class Walk(sg.ForkableEnv):
    """Counts up by dice; ends at 30. Actions 0 and 1 walk, words do other things."""

    def __init__(self, end: int = 30, mark: str = "") -> None:
        self.observation_space = gym.spaces.Box(-1e6, 1e6, (2,), np.float64)
        self.action_space = gym.spaces.Discrete(2)
        self.end, self.mark = end, mark
        self.at, self.taken = 0.0, 0
        self.bonus = 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = float(self.np_random.integers(5)) + (options or {}).get("start", 0)
        self.taken = 0
        return self._obs(), {"luck": float(self.np_random.random()), "word": "hello"}

    def step(self, action):
        if isinstance(action, str):
            self.trouble(action)
            action = 0
        self.taken += 1
        self.at += float(self.np_random.integers(1, 4)) + action + self.bonus
        done = self.at >= self.end
        return self._obs(), self.at / 10, done, False, {"taken": self.taken, "odd": self.at % 2}

    def trouble(self, word: str) -> None:
        """Do what a word says."""
        if word == "refuse":
            raise InvalidActionError("no such word here")
        if word == "raise":
            raise ZeroDivisionError("by nothing")
        if word == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "hang":
            time.sleep(1000)
        if word == "crash once" and not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "hang once" and not Path(self.mark).exists():
            Path(self.mark).touch()
            time.sleep(1000)

    def get_state(self) -> dict[str, Any]:
        return {"at": self.at, "taken": self.taken}

    def set_state(self, state: dict[str, Any]) -> None:
        self.at, self.taken = state["at"], state["taken"]

    def render(self) -> str:
        return f"at {self.at}"

    def pid(self) -> int:
        return os.getpid()

    def _obs(self):
        return np.array([self.at, self.taken], np.float64)


class Fickle(Walk):
    """Shows its process id: not deterministic."""

    def step(self, action):
        obs, *others = super().step(action)
        obs[1] = os.getpid()
        return (obs, *others)


class NeverBuilt(Walk):
    """Ends its process in its constructor."""

    def __init__(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class NotForkable(gym.Env):
    """Is no ForkableEnv; `sandboxgym.forkable` finds its state."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Discrete(1000)
        self.action_space = gym.spaces.Discrete(2)
        self.at = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(10))
        return self.at, {}

    def step(self, action):
        self.at += int(action) + int(self.np_random.integers(2))
        return self.at, 0.0, self.at > 50, False, {}


def walk() -> gym.Env:
    return Walk()


def limited_walk() -> gym.Env:
    return gym.wrappers.TimeLimit(Walk(), 8)


def normalized_walk() -> gym.Env:
    return gym.wrappers.NormalizeObservation(gym.wrappers.TimeLimit(Walk(), 8))


def counted_walk() -> gym.Env:
    return gym.wrappers.RecordEpisodeStatistics(gym.wrappers.TimeLimit(Walk(), 8))


def fickle() -> gym.Env:
    return Fickle()


def never_built() -> gym.Env:
    return NeverBuilt()


def not_forkable() -> gym.Env:
    return NotForkable()


def plain(results: Any) -> Any:
    """Results with arrays as lists, for `==`."""
    if isinstance(results, dict):
        return {key: plain(value) for key, value in results.items()}
    if isinstance(results, list | tuple):
        return [plain(value) for value in results]
    return results.tolist() if isinstance(results, np.ndarray) else results
