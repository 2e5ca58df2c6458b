"""Things that are given to the command line as environments."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium import spaces

import sandboxgym as sg


def nothing() -> None:
    return None


def a_text() -> str:
    return "an environment"


class Flooded(gym.Env[int, int]):
    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        raise RuntimeError("the house\n is flooded")


class Blink(gym.Env[int, int]):
    """An episode ends at its first step."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: int) -> Any:
        return 1, 1.0, True, False, {}


class Unrepeatable(sg.ForkableEnv[int, int]):
    """Its state can be put back, but each reset starts from another."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(10_000)
    resets = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        type(self).resets += 1
        self.count = 100 * type(self).resets
        return self.count, {}

    def step(self, action: int) -> Any:
        self.count += 1
        return self.count, 0.0, False, False, {}

    def get_state(self) -> Any:
        return self.count

    def set_state(self, state: Any) -> None:
        self.count = state


if "Registered-v3" not in gym.registry:
    gym.register("Registered-v3", entry_point=Blink)
