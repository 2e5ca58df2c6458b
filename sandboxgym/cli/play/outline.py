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
    lines: list[Line] = []
    for start in timeline.starts:
        lines.append(Line(start, "● ", start.origin, _notes(timeline, start)))
        lines.extend(_below(timeline, start, "", label))
    return lines


def number(value: Any, sign: str = "") -> str:
    """Spell a reward: a number, or the numbers of a vector."""
    return " ".join(f"{float(part):{sign}g}" for part in np.atleast_1d(value))


def _below(
    timeline: Timeline, moment: Moment, rail: str, label: Callable[[Any], str]
) -> Iterator[Line]:
    """What follows a moment: its later branches first, beside the one that runs on."""
    while moment.children:
        following, *later = moment.children
        for branch in later:
            yield _line(timeline, branch, f"{rail}├─{'┬' if branch.children else '─'} ", label)
            yield from _below(timeline, branch, f"{rail}│ ", label)
        moment = following
        yield _line(timeline, moment, f"{rail}{'├' if moment.children else '└'} ", label)


def _line(timeline: Timeline, moment: Moment, rail: str, label: Callable[[Any], str]) -> Line:
    return Line(moment, f"{rail}{moment.step} ", label(moment.action), _notes(timeline, moment))


def _notes(timeline: Timeline, moment: Moment) -> str:
    notes = []
    if moment.name:
        notes.append(f"★ {moment.name}")
    if moment.parent is not None and np.any(moment.last.reward):
        notes.append(number(moment.last.reward, "+"))
    if moment.last.ended:
        notes.append("■ end")
    notes.extend(f"[{branch}]" for branch in timeline.branches_at(moment))
    return "  ".join(notes)
