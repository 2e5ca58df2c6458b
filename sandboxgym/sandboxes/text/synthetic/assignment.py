"""What one game asks for, down to the single things."""

from __future__ import annotations

from dataclasses import dataclass

from sandboxgym.sandboxes.text.synthetic.house import Thing
from sandboxgym.sandboxes.text.synthetic.tasks import TaskType

_COUNTS = ("no", "a", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class Errand:
    """Things of one kind to be carried from one open place to another.

    Attributes:
        things: All things of the kind that the room has.
        goal: The receptacle that the walkthrough brings them to; any of its kind will do.
    """

    things: tuple[Thing, ...]
    goal: Thing

    @property
    def wording(self) -> str:
        """The errand in words."""
        return f"put {_COUNTS[len(self.things)]} {self.things[0].kind} in {self.goal.kind}".lower()


@dataclass(frozen=True)
class Assignment:
    """A type of task, applied to the things of a house.

    Attributes:
        type: The type of task.
        wording: Which of the type's wordings is used.
        targets: The things to find: all things of their kind that the room has.
        goal: The receptacle that the walkthrough brings them to (any of its kind will do), or the
            lamp to look at them with.
        tool: The receptacle that cleans, heats or cools, where the type has one.
        errand: What has to be done besides.
    """

    type: TaskType
    wording: str
    targets: tuple[Thing, ...]
    goal: Thing
    tool: Thing | None = None
    errand: Errand | None = None

    @property
    def text(self) -> str:
        """The assignment in words, as they follow ``Your task is to:``."""
        task = self.wording.format(obj=self.targets[0].kind, goal=self.goal.kind).lower()
        return task if self.errand is None else f"{self.errand.wording}, then {task}"
