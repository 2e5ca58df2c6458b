"""A tiny text world for tests of the learner: bring a ball from one shelf to another.

`gym.make("tests.learners.errands:tests/Errands-v0")` makes it; task `i` is the same everywhere.
"""

from __future__ import annotations

import string
from typing import Any

import numpy as np
from gymnasium import spaces

import sandboxgym as sg

COLOURS = ("red", "green", "blue")
SHELVES = 4


class Errands(sg.ForkableEnv[str, str]):
    """With `fog`, a random walk of its own hides the shelves now and then."""

    action_space = spaces.Text(60, charset=string.printable)
    observation_space = spaces.Text(400, charset=string.printable)

    def __init__(self, split: str = "train", expert_plan: bool = False, fog: float = 0.0) -> None:
        self.offset = {"train": 0, "test": 1000}[split]
        self.with_plan = expert_plan
        self.fog = fog

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        index = (options or {}).get("index")
        if index is None:
            index = int(self.np_random.integers(1000))
        dice = np.random.default_rng(self.offset + index)
        self.colour = COLOURS[dice.integers(len(COLOURS))]
        self.ball, self.goal = (int(n) + 1 for n in dice.choice(SHELVES, 2, replace=False))
        self.here = 0
        self.holding = False
        shelves = ", ".join(f"shelf {n}" for n in range(1, SHELVES + 1))
        return (
            f"You see {shelves}.\n\nYour task is to: put the {self.colour} ball on shelf "
            f"{self.goal}.",
            self._info(),
        )

    def step(self, action):
        words = action.split()
        if action not in self._commands():
            text = "Nothing happens."
        elif words[0] == "take":
            self.holding, self.ball = True, 0
            text = f"You take the {self.colour} ball."
        elif words[0] == "put":
            self.holding, self.ball = False, self.here
            text = f"You put the {self.colour} ball on shelf {self.here}."
        else:
            if words[0] == "go":
                self.here = int(words[-1])
            text = self._view()
        won = self.ball == self.goal
        return text, float(won), won, False, self._info()

    def get_state(self):
        return {
            "colour": self.colour,
            "ball": self.ball,
            "goal": self.goal,
            "here": self.here,
            "holding": self.holding,
        }

    def set_state(self, state):
        self.__dict__.update(state)

    def _view(self) -> str:
        if self.fog and self.np_random.random() < self.fog:
            return "It is foggy."
        if self.here == 0:
            return "You are in the middle of the room."
        seen = f"the {self.colour} ball" if self.ball == self.here else "nothing"
        return f"On shelf {self.here} you see {seen}."

    def _commands(self) -> list[str]:
        commands = ["look"] + [f"go to shelf {n}" for n in range(1, SHELVES + 1) if n != self.here]
        if self.here and self.ball == self.here:
            commands.append(f"take {self.colour} ball from shelf {self.here}")
        if self.here and self.holding:
            commands.append(f"put {self.colour} ball on shelf {self.here}")
        return sorted(commands)

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {
            "admissible_commands": self._commands(),
            "won": self.ball == self.goal,
        }
        if self.with_plan:
            info["expert_plan"] = self._plan()
        return info

    def _plan(self) -> list[str]:
        if self.ball == self.goal:
            return []
        fetch = [
            f"go to shelf {self.ball}",
            f"take {self.colour} ball from shelf {self.ball}",
        ]
        bring = [f"go to shelf {self.goal}", f"put {self.colour} ball on shelf {self.goal}"]
        plan = bring if self.holding else fetch + bring
        return plan[1:] if plan[0] == f"go to shelf {self.here}" else plan


sg.register("tests/Errands-v0", Errands, max_episode_steps=10)
