"""A sandbox as TRL's `environment_factory` wants one: `reset`, `get_reward`, and tools.

TRL takes every other public method of the class for a tool, so these classes have no other.

```
GRPOTrainer(..., environment_factory=sandbox_tools(lambda: gym.make("sandboxgym/ALFWorld-v0")))
```
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gymnasium import spaces

from sandboxgym.core.errors import InvalidActionError
from sandboxgym.core.forking import AnyEnv, restore, snapshot
from sandboxgym.core.snapshot import Snapshot

RESET_ARGUMENTS = ("seed", "options")


def sandbox_tools(make: Callable[[], AnyEnv], *, undo: bool = False) -> Callable[[], SandboxTools]:
    """The factory to give to `GRPOTrainer(environment_factory=...)`.

    Args:
        make: Makes an environment whose actions are texts. TRL keeps each and resets it often.
        undo: Let the model take back its latest command: it gets a second tool.
    """
    return functools.partial(SandboxToolsWithUndo if undo else SandboxTools, make)


class SandboxTools:
    """One sandbox, whose only tool is `act`."""

    def __init__(self, make: Callable[[], AnyEnv]) -> None:
        self._env = make()
        if not isinstance(self._env.action_space, spaces.Text):
            raise InvalidActionError(
                f"{self._env} takes actions of {self._env.action_space}, and the tool gives texts: "
                "put a wrapper around it that makes an action of a text"
            )
        self._paid: list[float] = []
        self._ended = False

    def reset(self, **row: Any) -> str:
        """Start the episode that a row of the data set asks for by its columns seed and options."""
        given = {name: row[name] for name in RESET_ARGUMENTS if row.get(name) is not None}
        observation, _ = self._env.reset(**given)
        self._paid, self._ended = [], False
        return str(observation)

    def get_reward(self) -> float:
        """The return of the episode so far."""
        return sum(self._paid)

    def act(self, command: str) -> str:
        """Do something in the world and get to know what happens.

        Args:
            command: What to do, such as "look".

        Returns:
            What is to be seen afterwards.
        """
        if self._ended:
            return "The episode has ended; nothing more can be done."
        observation, reward, terminated, truncated, _ = self._env.step(command)
        self._paid.append(float(reward))
        self._ended = bool(terminated or truncated)
        return str(observation)


class SandboxToolsWithUndo(SandboxTools):
    """The same with a second tool, `undo`. It takes back rewards too."""

    def __init__(self, make: Callable[[], AnyEnv]) -> None:
        super().__init__(make)
        self._past: list[Snapshot] = []

    def reset(self, **row: Any) -> str:
        """Start an episode, with nothing to be taken back."""
        observation = super().reset(**row)
        self._past = []
        return observation

    def act(self, command: str) -> str:
        """Do something in the world and get to know what happens.

        Args:
            command: What to do, such as "look".

        Returns:
            What is to be seen afterwards.
        """
        if self._ended:
            return super().act(command)
        before = snapshot(self._env)
        seen = super().act(command)
        self._past.append(before)
        return seen

    def undo(self) -> str:
        """Take back the latest command, as if it had never been given.

        Returns:
            What is to be seen then.
        """
        if not self._past:
            return "There is nothing to take back."
        observation, _ = restore(self._env, self._past.pop())
        self._paid.pop()
        self._ended = False
        return str(observation)
