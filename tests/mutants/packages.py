"""Faults that real packages have, seen through hooks that do nothing about them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

import sandboxgym as sg

from . import mutant


class Bare(sg.ForkableEnv[Any, Any]):
    """Hands through what an environment of Gymnasium returns; `state` is all it has."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.env = env
        self.inner: Any = env.unwrapped
        self.action_space = env.action_space
        self.observation_space = env.observation_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.inner._np_random = self.np_random
        return self.env.reset()

    def step(self, action):
        return self.env.step(action)

    def get_state(self):
        return {"state": self.inner.state}

    def set_state(self, state):
        self.inner.state = state["state"]


@mutant("20")
class MountainCarContinuous(Bare):
    """Its observation is its own state: who writes into it moves the car."""

    def __init__(self):
        super().__init__(gym.make("MountainCarContinuous-v0").unwrapped)


@mutant("06")
class PendulumUnderALimitLeftBehind(Bare):
    """Restored through `env.unwrapped`: the counter of its `TimeLimit` stays where it was."""

    def __init__(self):
        super().__init__(gym.make("Pendulum-v1", max_episode_steps=10))
