"""The correct environments that mutants are made from."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

import sandboxgym as sg
from sandboxgym.core.errors import InvalidActionError

GOODS = ("tin", "oak", "salt", "rope", "wool", "hemp", "clay", "coal", "figs", "silk")


class Ferry(sg.ForkableEnv[np.ndarray, int]):
    """A ferry in a random current: numbers, an array that is written to, a list, a generator."""

    observation_space = spaces.Box(-np.inf, np.inf, (7,), np.float64)
    action_space = spaces.Discrete(3)

    def __init__(self, fuel: int = 20) -> None:
        self.capacity = fuel
        self.fuel = fuel
        self.position = 0.0
        self.harbour = 0.0
        self.depths = np.zeros((2, 2))
        self.cargo: list[str] = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.fuel = self.capacity
        self.position = 0.0
        self.harbour = self.draw()
        self.depths = np.zeros((2, 2))
        self.cargo = []
        return self.observe(), self.report()

    def step(self, action):
        self.validate(action)
        self.fuel -= 1
        self.position += float(action) - 1 + self.draw()
        self.depths[self.fuel % 2, int(action) % 2] += self.position
        if action == 2:
            self.cargo.append(GOODS[self.fuel % len(GOODS)])
        distance = abs(self.harbour - self.position)
        return self.observe(), -distance, self.fuel <= 0, False, self.report()

    def validate(self, action):
        if not self.action_space.contains(action):
            raise InvalidActionError(f"{action!r} is no course")

    def draw(self):
        return float(self.np_random.normal())

    def observe(self):
        return np.array([self.fuel, self.position, self.harbour, *self.depths.ravel()])

    def report(self) -> dict[str, Any]:
        return {"cargo": list(self.cargo)}

    def get_state(self):
        return {
            "fuel": self.fuel,
            "position": self.position,
            "harbour": self.harbour,
            "depths": self.depths,
            "cargo": self.cargo,
        }

    def set_state(self, state):
        self.fuel = state["fuel"]
        self.position = state["position"]
        self.harbour = state["harbour"]
        self.depths = state["depths"]
        self.cargo = state["cargo"]


class ThreadedFerry(Ferry):
    """Claims that its forks may run in threads."""

    @property
    def fidelity(self):
        return sg.Fidelity(threads=True)


class Dictionary(Ferry):
    """Nested observations, and commands of which not all are admissible at all times."""

    observation_space = spaces.Dict(
        {"text": spaces.Text(100), "numbers": spaces.Tuple([spaces.Box(-1e9, 1e9, (7,))])}
    )
    action_space = spaces.Text(10)

    def step(self, action):
        if action not in self.commands():
            raise InvalidActionError(f"{action!r} is no command")
        return super().step(("back", "wait", "load").index(action))

    def validate(self, action):
        pass

    def commands(self):
        return ["back", "wait"] if self.fuel % 3 == 0 else ["wait", "load"]

    def observe(self):
        return {"text": " ".join(self.cargo), "numbers": (super().observe(),)}

    def report(self):
        return {**super().report(), "admissible_commands": self.commands()}


class OwnGenerator(Ferry):
    """Draws from a generator of its own, and does all that this asks for."""

    def __init__(self):
        super().__init__()
        self.own = np.random.default_rng(0)

    def reset(self, *, seed=None, options=None):
        if seed is None:
            seed = int(self.np_random.integers(2**31))
        self.own = np.random.default_rng(seed)
        return super().reset(seed=seed)

    def draw(self):
        return float(self.own.normal())

    def reseed(self, seed):
        super().reseed(seed)
        self.own = np.random.default_rng(seed)

    def get_state(self):
        return {**super().get_state(), "own": self.own.bit_generator.state}

    def set_state(self, state):
        super().set_state(state)
        self.own.bit_generator.state = state["own"]


def limited() -> gym.Env[Any, Any]:
    return RecordEpisodeStatistics(TimeLimit(Ferry(), 10))


def cart_pole() -> gym.Env[Any, Any]:
    return sg.forkable(gym.make("CartPole-v1"), "replay")


def frozen_lake() -> gym.Env[Any, Any]:
    return sg.forkable(gym.make("FrozenLake-v1", is_slippery=True), "replay")


def alfworld() -> gym.Env[Any, Any]:
    return gym.make("sandboxgym/ALFWorld-v0", source="synthetic")


class OneStep(sg.ForkableEnv[int, int]):
    """The shortest episode there is."""

    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(2)
    good = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.good = int(self.np_random.integers(2))
        return 0, {}

    def step(self, action):
        if not self.action_space.contains(action):
            raise InvalidActionError(f"{action!r} is no arm")
        return 1, float(action == self.good), True, False, {}

    def get_state(self):
        return {"good": self.good}

    def set_state(self, state):
        self.good = state["good"]


CORRECT = [
    Ferry,
    ThreadedFerry,
    Dictionary,
    OwnGenerator,
    OneStep,
    limited,
    cart_pole,
    frozen_lake,
    alfworld,
]
