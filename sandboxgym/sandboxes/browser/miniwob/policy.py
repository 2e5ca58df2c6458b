"""A player that acts at random, but on what is on the page, with the words of the task.

policy = RandomPolicy(np.random.default_rng(7))
obs, reward, terminated, truncated, info = env.step(policy(obs))
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

_NAME = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""  # as Python's repr writes it
_LINE = re.compile(rf"\t*\[(\d+)\] (\w+)(?: ({_NAME}))?")
_WRITABLE = frozenset({"textbox", "searchbox", "spinbutton"})
_CLICKABLE = frozenset(
    {"button", "link", "checkbox", "radio", "tab", "menuitem", "option", "slider", "generic"}
)
_KEYS = ("Enter", "Tab", "ArrowDown", "ArrowUp", "Backspace", "Escape", "Control+a", "PageDown")
_AREA = (4, 54, 156, 206)  # where tasks take place: left, top, right, bottom


@dataclass(frozen=True)
class Element:
    """One line of the accessibility tree."""

    bid: str
    role: str
    name: str


def elements(axtree: str) -> list[Element]:
    """The elements of an observation's `axtree`."""
    found = (_LINE.match(line) for line in axtree.split("\n"))
    return [Element(m[1], m[2], (m[3] or "")[1:-1]) for m in found if m]


class RandomPolicy:
    """See this module's text.

    Args:
        rng: Decides everything.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def __call__(self, obs: dict[str, Any]) -> str:
        """An action for an observation of `MiniWoBEnv`."""
        known = elements(obs["axtree"])
        draw = self._rng.random()
        if known and draw < 0.75:
            return self._on(self._pick(known), known, obs)
        left, top, right, bottom = _AREA
        x, y, to_x, to_y = (
            int(self._rng.integers(low, high))
            for low, high in ((left, right), (top, bottom), (left, right), (top, bottom))
        )
        return str(
            self._rng.choice(
                [
                    f"mouse_click({x}, {y})",
                    f"mouse_click({x}, {y})",
                    f"mouse_move({x}, {y})",
                    f"mouse_drag_and_drop({x}, {y}, {to_x}, {to_y})",
                    f"keyboard_press({str(self._rng.choice(_KEYS))!r})",
                    f"keyboard_type({self._word(obs)!r})",
                    f"scroll(0, {int(self._rng.integers(-100, 200))})",
                    f"noop({int(self._rng.integers(20, 800))})",
                ]
            )
        )

    def _pick(self, known: list[Element]) -> Element:
        useful = [e for e in known if e.role in _WRITABLE | _CLICKABLE | {"combobox", "listbox"}]
        among = useful if useful and self._rng.random() < 0.8 else known
        return among[int(self._rng.integers(len(among)))]

    def _on(self, element: Element, known: list[Element], obs: dict[str, Any]) -> str:
        bid, draw = element.bid, self._rng.random()
        if element.role in _WRITABLE and draw < 0.6:
            return f"fill({bid!r}, {self._word(obs)!r})"
        options = [e.name for e in known if e.role == "option"]
        if element.role in ("combobox", "listbox") and options and draw < 0.7:
            return f"select_option({bid!r}, {str(self._rng.choice(options))!r})"
        if draw < 0.05:
            return f"press({bid!r}, {str(self._rng.choice(_KEYS))!r})"
        if draw < 0.1:
            return f"hover({bid!r})"
        if draw < 0.15:
            other = known[int(self._rng.integers(len(known)))]
            return f"drag_and_drop({bid!r}, {other.bid!r})"
        if draw < 0.2:
            return f"dblclick({bid!r})"
        return f"click({bid!r})"

    def _word(self, obs: dict[str, Any]) -> str:
        """A value of the task's fields, a quoted part or some word of it."""
        asked = [value for _, value in obs["fields"]] + re.findall(r'"([^"]+)"', obs["utterance"])
        words = asked or obs["utterance"].split() or ["7"]
        return str(self._rng.choice(words))
