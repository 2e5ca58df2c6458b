"""Small correct environments that the tests of the core share."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

import sandboxgym as sg
from sandboxgym.core.errors import InvalidOptionsError


class RandomWalk(sg.ForkableEnv[np.ndarray, int]):
    """A walk with noise: its future depends on its position, its counter and its generator."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Discrete(3)

    def __init__(self, goal: float = 1e9, render_mode: str | None = None) -> None:
        self.goal = goal
        self.position = 0.0
        self.visits: list[int] = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        options = options or {}
        if "bad" in options:
            raise InvalidOptionsError("no such option")
        self.position = float(options.get("start", 0.0))
        self.visits = []
        return self._observation(), self._info()

    def step(self, action):
        if action == 99:
            self.position = 99.0
            raise OSError("disk on fire")
        self.position += float(action) + self.np_random.normal()
        self.visits.append(int(action))
        done = self.position >= self.goal
        return self._observation(), self.position, done, False, self._info()

    def get_state(self):
        return {"position": self.position, "visits": self.visits}

    def set_state(self, state):
        self.position = state["position"]
        self.visits = state["visits"]

    def _observation(self):
        return np.array([self.position, len(self.visits)])

    def _info(self) -> dict[str, Any]:
        return {"visits": list(self.visits)}


class Forgetful(RandomWalk):
    """Leaves its counter out of the state, so that a digest cannot agree after a replay."""

    def get_state(self):
        return {"position": self.position, "clock": id(self)}

    def set_state(self, state):
        self.position = state["position"]


class Fragile(RandomWalk):
    """`set_state` fails half-way whenever the position is negative zero."""

    broken = False

    def set_state(self, state):
        self.position = 12345.0
        if state["visits"] == [2, 2] or self.broken:
            raise OSError("disk on fire")
        super().set_state(state)
