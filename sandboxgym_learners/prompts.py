"""What the policy reads: the task, how far it got, what it did lately, what it sees now."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TASK = re.compile(r"your task is to:\s*(.+)", re.IGNORECASE)
_TASK_LINE = "Task: "
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class PromptFormat:
    """How much of an episode goes into a prompt; older history is cut off.

    Attributes:
        actions: How many of the latest actions are listed.
        observations: How many of the latest observations are shown, the present one included.
        commands: List the commands that can be given now. For a policy that writes: one that
            chooses among them sees them anyway.
    """

    actions: int = 8
    observations: int = 1
    commands: bool = False

    def __post_init__(self) -> None:
        if self.actions < 0 or self.observations < 1:
            raise ValueError(
                f"actions={self.actions}, observations={self.observations}: a prompt needs at "
                "least 0 actions and 1 observation"
            )


@dataclass(frozen=True, slots=True)
class Episode:
    """What an agent has seen and done so far, in the words of its face (`faces`).

    Attributes:
        task: What it is to do.
        observations: What it saw: at the reset, and after every action.
        actions: What it did.
    """

    task: str
    observations: tuple[str, ...]
    actions: tuple[str, ...] = ()

    @classmethod
    def start(cls, observation: str) -> Episode:
        """Begin with what a reset returned.

        Where it says "Your task is to: …", that line is the task and the rest what is seen;
        otherwise the whole text is the task.
        """
        found = _TASK.search(observation)
        if found is None:
            return cls(one_line(observation), ("",))
        seen = observation[: found.start()] + observation[found.end() :]
        return cls(one_line(found.group(1)), (one_line(seen),))

    def after(self, action: str, observation: str) -> Episode:
        """The episode one decision later."""
        return Episode(self.task, (*self.observations, observation), (*self.actions, action))

    def prompt(self, form: PromptFormat, commands: Sequence[str] = ()) -> str:
        """The text in front of the next action.

        Args:
            form: What is in it.
            commands: What can be done now, for a form that lists it.
        """
        lines = [_TASK_LINE + self.task, f"Steps taken: {len(self.actions)}"]
        lines += self._recent(form)
        lines.append(f"You see: {self.observations[-1]}")
        if form.commands and commands:
            lines.append("You can: " + " | ".join(commands))
        lines.append("Action:")
        return "\n".join(lines)

    def _recent(self, form: PromptFormat) -> Sequence[str]:
        """The latest actions, those among them whose result is still shown with it."""
        taken = len(self.actions)
        lines = []
        for step in range(max(0, taken - form.actions), taken):
            shown = taken - form.observations < step + 1 < taken
            result = f" -> {self.observations[step + 1]}" if shown else ""
            lines.append(f"> {self.actions[step]}{result}")
        return lines


def task_of(prompt: str) -> str:
    """The task that a prompt states."""
    return prompt.partition("\n")[0].removeprefix(_TASK_LINE)


def one_line(text: str) -> str:
    """A text with every run of white space made one space."""
    return _SPACE.sub(" ", text).strip()
