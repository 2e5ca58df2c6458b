"""How the learner talks to each kind of sandbox: observations into text, text into actions.

An environment of this package is known by its id; any other one is taken for a text world. What the
policy says reaches the environment as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.chat import Style
from sandboxgym_learners.prompts import Episode, one_line

Info = dict[str, Any]


class WorldError(SandboxGymError, ValueError):
    """The environment lacks what the learner needs of it; the message says what."""


@dataclass(frozen=True)
class Face:
    """The four translations, and how a policy that writes is to answer.

    Attributes:
        options: For `reset`, by the number of the task; its seed is that number too.
        begin: What an episode starts with, from the first observation and info.
        see: An observation as text.
        act: The action that a text stands for.
        won: Whether an episode solved its task, from its last reward and info; None if not known.
        style: Of the system message.
    """

    options: Callable[[int], dict[str, Any] | None]
    begin: Callable[[Any, Info], Episode]
    see: Callable[[Any], str]
    act: Callable[[str], Any]
    won: Callable[[float, Info], bool | None]
    style: Style


def face_of(env: str) -> Face:
    """How to talk to the environment of this id."""
    return _FACES.get(env.rpartition(":")[2], TEXT)


def _told(_: float, info: Info) -> bool | None:
    won = info.get("won")
    return None if won is None else bool(won)


def _begin(seen: Any, _: Info) -> Episode:
    if not isinstance(seen, str):
        raise WorldError(
            f"the environment's observations are {type(seen).__name__}; the learner reads text"
        )
    return Episode.start(seen)


def _same(text: str) -> str:
    return text


TEXT = Face(
    options=lambda task: {"index": task},
    begin=_begin,
    see=one_line,
    act=_same,
    won=_told,
    style="command",
)
"""A text world, such as ALFWorld, whose first observation states the task."""

WEBSHOP = Face(
    options=lambda task: {"goal": task},
    begin=lambda seen, info: Episode(one_line(info["instruction"]), (one_line(seen),)),
    see=one_line,
    act=_same,
    won=_told,
    style="command",
)
"""WebShop in text mode; a task is a goal."""


def _output(seen: dict[str, Any]) -> str:
    notes = []
    if seen["truncated"]:
        notes.append(f"[{seen['elided_chars']} characters were left out]")
    if seen["timed_out"]:
        notes.append("[the command took too long and was ended]")
    if seen["returncode"]:
        notes.append(f"[exit status {seen['returncode']}]")
    return "\n".join([seen["output"].rstrip(), *notes]).strip() or "[no output]"


SHELL = Face(
    options=lambda _: None,
    begin=lambda seen, _: Episode(seen["output"].strip(), ("A shell in the repository.",)),
    see=_output,
    act=lambda text: {"submit": True} if text == "submit" else text,
    won=lambda reward, _: reward >= 1,
    style="shell",
)
"""A repository with a shell: the task is the statement, drawn by the seed."""


def _page(seen: dict[str, Any]) -> str:
    error = seen["last_action_error"]
    return "\n".join([*([f"[{error}]"] if error else []), seen["axtree"]])


MINIWOB = Face(
    options=lambda _: None,
    begin=lambda seen, _: Episode(one_line(seen["utterance"]), (_page(seen),)),
    see=_page,
    act=_same,
    won=lambda reward, _: reward > 0,
    style="browser",
)
"""MiniWoB++: the task is the utterance, drawn by the seed; the page is its accessibility tree."""

_FACES = {
    "sandboxgym/WebShop-v0": WEBSHOP,
    "sandboxgym/Repo-v0": SHELL,
    "sandboxgym/SWEBench-v0": SHELL,
    "sandboxgym/MiniWoB-v0": MINIWOB,
}
