"""A household task for learners that take arrays and numbers: commands become a menu.

Most algorithms of reinforcement learning know nothing of texts. This wrapper numbers the useful
commands, and makes an array of what was read and said. It is for one small game, to be learned by
heart; take a language model for more.
"""

from __future__ import annotations

import zlib
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from household import make_env, useful
from numpy.typing import NDArray

import sandboxgym as sg

WIDTH = 48
CHOICES = 16


def words(text: str) -> NDArray[np.float32]:
    """Which words are in a text, each at a place of its own, almost."""
    array = np.zeros(WIDTH, np.float32)
    for word in text.split():
        array[zlib.crc32(word.encode()) % WIDTH] = 1.0
    return array


class Menu(gym.Wrapper[NDArray[np.float32], int, str, str]):
    """Choose a command by its number; see what was read last, and all that was said before."""

    def __init__(self, env: gym.Env[str, str]) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(0.0, 1.0, (2 * WIDTH,), np.float32)
        self.action_space = spaces.Discrete(CHOICES)
        self.commands: list[str] = []
        self.said: list[str] = []

    def reset(self, **kwargs: Any) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start an episode."""
        seen, info = self.env.reset(**kwargs)
        self.commands, self.said = useful(info), []
        return self._array(seen), info

    def step(self, action: int) -> tuple[NDArray[np.float32], Any, bool, bool, dict[str, Any]]:
        """Give the command of a number; numbers that are too high begin again at the first."""
        command = self.commands[int(action) % len(self.commands)]
        seen, reward, terminated, truncated, info = self.env.step(command)
        self.commands = useful(info)
        self.said = [*self.said, command]
        return self._array(seen), reward, terminated, truncated, info

    def _array(self, seen: str) -> NDArray[np.float32]:
        return np.concatenate([words(seen), words(" ".join(self.said))])


def _get(menu: Menu) -> dict[str, Any]:
    return {"commands": menu.commands, "said": menu.said}


def _set(menu: Menu, state: dict[str, Any]) -> None:
    menu.commands, menu.said = state["commands"], state["said"]


sg.register_wrapper_state(Menu, _get, _set)  # what a wrapper keeps is a part of each snapshot


def make_menu_env() -> gym.Env[NDArray[np.float32], int]:
    """One game, in 20 steps."""
    game = make_env(num_games=1, max_episode_steps=20)
    return sg.Forkable(Menu(game))


def moments_of_a_plan() -> list[sg.Snapshot]:
    """The moments on the way of a plan that wins, the start first."""
    planner = make_env(num_games=1, expert_plan=True)
    _, info = planner.reset(seed=0)
    planner.close()
    env = make_menu_env()
    _, now = env.reset(seed=0)
    moments = []
    for command in info["expert_plan"]:
        moments.append(sg.snapshot(env))
        _, _, _, _, now = env.step(useful(now).index(command))
    env.close()
    return moments
