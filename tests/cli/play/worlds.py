"""Small environments that do what a player must survive."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import sandboxgym as sg
from sandboxgym.core.errors import InvalidActionError


class Corridor(sg.ForkableEnv[str, str]):
    """Walk to the right; the third room is the last."""

    def __init__(self, trouble: str = "") -> None:
        self.trouble = trouble
        self.action_space = spaces.Text(50, min_length=0)
        self.observation_space = spaces.Text(500, min_length=0)
        self.room = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        if self.trouble == "reset":
            raise RuntimeError("the corridor is flooded")
        self.room = 0
        return self._told(), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action == "jump":
            self.room = 99  # half-way changed when it fails
            raise RuntimeError("the ceiling is low")
        if action == "fly":
            raise InvalidActionError("you have no wings")
        self.room += {"right": 1, "left": -1}.get(action, 0)
        won = self.room == 3
        return self._told(), float(won), won, False, self._info()

    def get_state(self) -> dict[str, Any]:
        return {"room": self.room}

    def set_state(self, state: dict[str, Any]) -> None:
        if self.trouble == "restore":
            raise OSError("the disk is gone")
        self.room = state["room"]

    def _told(self) -> str:
        return f"Du stehst in Raum {self.room}. 🚪 [bold]Türen[/bold] führen weiter: 左右"

    def _info(self) -> dict[str, Any]:
        return {"admissible_commands": ["left", "right", "warte kurz"]}


class Dice(gym.Env[Any, Any]):
    """Draws anew at every step; made forkable by a mechanism."""

    def __init__(self, action_space: gym.Space[Any] | None = None) -> None:
        self.action_space = action_space or spaces.Discrete(2)
        self.observation_space = spaces.Box(0, 1, (3,), np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.np_random.random(3), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        drawn = self.np_random.random(3)
        return drawn, float(drawn[0]), False, False, {}


def dice(action_space: gym.Space[Any] | None = None) -> gym.Env[Any, Any]:
    return sg.forkable(Dice(action_space), mechanism="replay", factory=lambda: Dice(action_space))
