"""Environments that an inexact mechanism gets wrong, one trap each, and a correct one beside them.

None is a `ForkableEnv`: they are what people write who know nothing of snapshots.
"""

from __future__ import annotations

import random
import tempfile
import threading
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle


class Walk(gym.Env[np.ndarray, int]):
    """A random walk; correct."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Discrete(3)

    def __init__(self, goal: float = 8.0) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Discrete(3)
        self.goal = goal
        self.position = 0.0
        self.visits: list[int] = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = self.draw()
        self.visits = []
        return self.observe(), self.report()

    def step(self, action):
        self.position += float(action) - 1 + self.draw()
        self.visits.append(int(action))
        return self.observe(), self.position, abs(self.position) > self.goal, False, self.report()

    def draw(self) -> float:
        return float(self.np_random.normal())

    def observe(self):
        return np.array([self.position, len(self.visits)])

    def report(self) -> dict[str, Any]:
        return {"visits": list(self.visits)}


class Visits:
    """An object of one's own, which is no plain data."""

    def __init__(self) -> None:
        self.places: list[int] = []


class KeepsAnObject(Walk):
    """Correct, but not made of plain data."""

    def reset(self, *, seed=None, options=None):
        self.trail = Visits()
        return super().reset(seed=seed)

    def step(self, action):
        self.trail.places.append(int(action))
        return super().step(action)

    def report(self):
        return {"trail": list(self.trail.places)}


_steps_of_all = 0


class CountsInAModule(KeepsAnObject):
    def step(self, action):
        global _steps_of_all
        _steps_of_all += 1
        return super().step(action)

    def reset(self, *, seed=None, options=None):
        global _steps_of_all
        _steps_of_all = 0
        return super().reset(seed=seed)

    def report(self):
        return {**super().report(), "steps": _steps_of_all}


class ListOfTheClass(KeepsAnObject):
    shared: ClassVar[list[int]] = []

    def reset(self, *, seed=None, options=None):
        self.shared.clear()
        return super().reset(seed=seed)

    def step(self, action):
        self.shared.append(int(action))
        return super().step(action)

    def report(self):
        return {**super().report(), "shared": len(self.shared)}


class ListOfTheClassAmongPlainData(Walk):
    shared: ClassVar[list[int]] = []

    def reset(self, *, seed=None, options=None):
        self.shared.clear()
        return super().reset(seed=seed)

    def step(self, action):
        self.shared.append(int(action))
        return super().step(action)

    def report(self):
        return {**super().report(), "shared": len(self.shared)}


class DefaultArgument(Walk):
    def step(self, action, seen: list[int] = []):  # noqa: B006 - that is the fault
        seen.append(action)
        obs, reward, *rest, info = super().step(action)
        return obs, reward, *rest, {**info, "seen": len(seen)}


class GlobalGenerator(Walk):
    def reset(self, *, seed=None, options=None):
        if seed is not None:
            np.random.seed(seed)
            random.seed(seed)
        return super().reset(seed=seed)

    def draw(self):
        return float(np.random.normal()) + random.random()


class Pickled(Walk, EzPickle):
    """Its deepcopy is a new environment, as those of ALE and MuJoCo are."""

    def __init__(self, goal: float = 8.0) -> None:
        EzPickle.__init__(self, goal)
        super().__init__(goal)
        self.trail = Visits()


class CopiesAfresh(KeepsAnObject):
    """Its deepcopy is a new one as well, without telling so."""

    def __deepcopy__(self, memo):
        fresh = type(self)(self.goal)
        fresh.reset(seed=1)
        return fresh


class NeverTheSame(KeepsAnObject):
    """Each episode of one instance has seeds of its own, as those of Crafter have."""

    episodes = 0

    def reset(self, *, seed=None, options=None):
        self.episodes += 1
        return super().reset(seed=None if seed is None else seed + 1000 * self.episodes)


class Entropy(KeepsAnObject):
    def draw(self):
        return float(np.random.default_rng().normal())


class FileOnDisk(KeepsAnObject):
    """Keeps its visits in a file, which no copy of its memory has."""

    def __init__(self, goal: float = 8.0) -> None:
        super().__init__(goal)
        self.folder = tempfile.TemporaryDirectory()
        self.diary = Path(self.folder.name) / "diary"

    def reset(self, *, seed=None, options=None):
        self.diary.write_text("")
        return super().reset(seed=seed)

    def step(self, action):
        with self.diary.open("a") as file:
            file.write(str(action))
        return super().step(action)

    def report(self):
        return {"diary": self.diary.read_text()}


class Threaded(KeepsAnObject):
    """Has a thread that waits."""

    def __init__(self, goal: float = 8.0) -> None:
        super().__init__(goal)
        self.over = threading.Event()
        threading.Thread(target=self.over.wait, daemon=True).start()

    def close(self):
        self.over.set()


class Slotted(Walk):
    __slots__ = ("hidden",)


class Bare(gym.Env[Any, Any]):
    """Nothing can be done with it."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        raise OSError("no game file")
