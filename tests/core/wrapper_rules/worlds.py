"""Stochastic worlds to put wrappers around: with vectors, dicts and images as observations."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import sandboxgym as sg


class Drift(sg.ForkableEnv[object, object]):
    """A noisy point that is now and then lost; every part of its future is random."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 1000}
    _frameskip = 1

    def __init__(
        self, sees: str = "box", acts: str = "discrete", render_mode: str | None = None
    ) -> None:
        self.sees, self.acts, self.render_mode = sees, acts, render_mode
        self.where, self.taken, self.lives = np.zeros(3, np.float32), 0, 2
        box = spaces.Box(-10.0, 10.0, (3,), np.float32)
        image = spaces.Box(0, 255, (12, 10, 3), np.uint8)
        pair = spaces.Dict({"where": box, "taken": spaces.Discrete(1000)})
        self.observation_space = {"box": box, "image": image, "dict": pair}[sees]
        move = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(3) if acts == "discrete" else move
        self.ale = Screen(self)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.where = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        self.taken, self.lives = 0, 2
        return self._observation(), {"taken": np.array(0)}

    def step(self, action):
        push = np.resize(np.asarray(action, np.float32), 3) * 0.1
        noise = self.np_random.normal(0, 0.5, 3)
        self.where = np.clip(self.where + push + noise, -10, 10).astype(np.float32)
        self.taken += 1
        if self.np_random.random() < 0.2:
            self.lives -= 1
        lost = self.lives == 0
        return (
            self._observation(),
            float(self.where[0]),
            lost,
            False,
            {"taken": np.array(self.taken)},
        )

    def get_state(self):
        return {"where": self.where, "taken": self.taken, "lives": self.lives}

    def set_state(self, state):
        self.where, self.taken, self.lives = state["where"], state["taken"], state["lives"]

    def render(self):
        shades = np.clip(128 + 10 * self.where, 0, 255).astype(np.uint8)
        picture = np.zeros((12, 10, 3), np.uint8)
        picture[self.taken % 12 :, :] = shades
        return picture

    def get_action_meanings(self):
        return ["NOOP", "LEFT", "RIGHT"]

    def _observation(self):
        if self.sees == "image":
            return self.render()
        if self.sees == "dict":
            return {"where": self.where.copy(), "taken": np.int64(self.taken)}
        return self.where.copy()


class Screen:
    """The part of the Arcade Learning Environment's interface that `AtariPreprocessing` uses."""

    def __init__(self, world: Drift) -> None:
        self._world = world

    def lives(self) -> int:
        return self._world.lives

    def getScreenRGB(self, out):  # noqa: N802 - the interface's name
        out[...] = self._world.render()

    def getScreenGrayscale(self, out):  # noqa: N802
        out[...] = self._world.render().mean(axis=-1).astype(np.uint8)


class Framework(Drift):
    """A world whose observations, and the actions it takes, are arrays of jax or torch."""

    def __init__(self, namespace: str = "jax.numpy") -> None:
        super().__init__()
        self.namespace = namespace

    def step(self, action):
        import importlib

        framework = importlib.import_module(self.namespace)
        if type(action).__module__.split(".")[0] not in ("jax", "jaxlib", "torch"):
            raise TypeError(f"{type(action)} is no array of {self.namespace}")
        obs, reward, terminated, truncated, info = super().step(np.asarray(action))
        return framework.asarray(obs), reward, terminated, truncated, info


def ends_itself(env: gym.Env) -> bool:
    """Whether an `Autoreset` in the stack starts the next episode."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.Autoreset):
            return True
        env = env.env
    return False
