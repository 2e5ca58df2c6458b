"""The tree of moments as lines of text.

A branch runs straight down, however long it is; what forks off is drawn beside it::

    ● seed 7
    ├ 1 go to fridge 1
    ├─┬ 2 look
    │ └ 3 go to sink 1  [branch 2]
    └ 2 open fridge 1  [main]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sandboxgym.cli.play.timeline import Moment, Timeline


@dataclass(frozen=True, eq=False)
class Line:
    """One moment of the tree.

    Attributes:
        moment: The moment.
        rail: What is drawn before it, and the number of its step.
        text: What led there.
        notes: Its name, its reward, its end, and the branches that end there.
    """

    moment: Moment
    rail: str
    text: str
    notes: str

    def __str__(self) -> str:
        return f"{self.rail}{self.text}  {self.notes}".rstrip()


def outline(timeline: Timeline, label: Callable[[Any], str]) -> list[Line]:
    """Draw the tree.

    Args:
        timeline: The tree.
        label: Spells an action.
    """
    ends: dict[Moment, list[str]] = {}
    for branch, tip in timeline.tips.items():
        ends.setdefault(tip, []).append(branch)
    pen = _Pen(label, ends)
    lines: list[Line] = []
    for start in timeline.starts:
        lines.append(Line(start, "● ", start.origin, pen.notes(start)))
        lines.extend(pen.below(start, ""))
    return lines


def number(value: Any, sign: str = "") -> str:
    """Spell a reward: a number, or the numbers of a vector."""
    return " ".join(f"{float(part):{sign}g}" for part in np.atleast_1d(value))


@dataclass(frozen=True)
class _Pen:
    """Draws what follows a moment.

    Attributes:
        label: Spells an action.
        ends: The branches that end at a moment.
    """

    label: Callable[[Any], str]
    ends: dict[Moment, list[str]]

    def below(self, moment: Moment, rail: str) -> Iterator[Line]:
        """What follows a moment: its later branches first, beside the one that runs on."""
        while moment.children:
            following, *later = moment.children
            for branch in later:
                yield self.line(branch, f"{rail}├─{'┬' if branch.children else '─'} ")
                yield from self.below(branch, f"{rail}│ ")
            moment = following
            yield self.line(moment, f"{rail}{'├' if moment.children else '└'} ")

    def line(self, moment: Moment, rail: str) -> Line:
        """One moment."""
        text = self.label(moment.action)
        return Line(moment, f"{rail}{moment.step} ", text, self.notes(moment))

    def notes(self, moment: Moment) -> str:
        """Its name, its reward, its end, and the branches that end there."""
        notes = []
        if moment.name:
            notes.append(f"★ {moment.name}")
        if moment.parent is not None and np.any(moment.last.reward):
            notes.append(number(moment.last.reward, "+"))
        if moment.last.ended:
            notes.append("■ end")
        notes.extend(f"[{branch}]" for branch in self.ends.get(moment, ()))
        return "  ".join(notes)
