"""What the search examples share: household tasks, and a hunch which commands may further one.

The hunch stands where a language model would: it reads the task and the command, and knows nothing
of the game behind them. It cannot solve a task by itself.
"""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym

import sandboxgym as sg  # noqa: F401 - registers the sandboxes

_TASK = re.compile(r"Your task is to: (.*)\.")
_ONLY_LOOK = {"examine", "help", "inventory", "look"}
_SAME = {"hot": "heat", "cold": "cool"}  # what tasks call it, and what commands call it


def make_env(**further: Any) -> gym.Env[str, str]:
    """Generated houses; only winning pays, 1.0. By default an episode has 50 steps."""
    return gym.make("sandboxgym/ALFWorld-v0", source="synthetic", difficulty="easy", **further)


def task_of(first_seen: str) -> str:
    """The task, as the first observation tells it."""
    found = _TASK.search(first_seen)
    assert found is not None, "the first observation of a game tells the task"
    return found[1]


def hunch(task: str, command: str) -> int:
    """How many of a command's words are of the task: 2 of "heat mug 1" in "put a hot mug away"."""
    wanted = {_SAME.get(word, word) for word in task.split()} - {"with"}
    return len(wanted & set(command.split()))


def useful(info: dict[str, Any]) -> list[str]:
    """The commands that can be given now, without those that only look."""
    return [c for c in info["admissible_commands"] if c.split()[0] not in _ONLY_LOOK]
