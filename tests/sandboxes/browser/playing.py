"""Playing by what is on the page, instead of by ids."""

from __future__ import annotations

import re
from typing import Any

from sandboxgym.sandboxes.browser.env import BrowserEnv

_ON_ELEMENT = re.compile(r"(\w+) (\w+) '([^']*)'(?: '([^']*)')?")
_NAMES = {"select": "select_option", "upload": "upload_file"}


def action_of(obs: dict[str, Any], text: str) -> str:
    """An action for "click button 'send'" or "fill textbox 'word' 'milk'"; others as they are."""
    found = _ON_ELEMENT.fullmatch(text)
    if found is None:
        return text
    kind, role, name, argument = found.groups()
    bid = bid_of(obs, role, name)
    if kind == "upload":
        return f"upload_file('{bid}', 'notes.txt', 'some content')"
    given = "" if argument is None else f", {argument!r}"
    return f"{_NAMES.get(kind, kind)}('{bid}'{given})"


def bid_of(obs: dict[str, Any], role: str, name: str) -> str:
    """The id of the first element of a role and a name that begins so."""
    line = re.search(rf"\[(\d+)\] {role} '{re.escape(name)}", obs["axtree"])
    assert line is not None, f"no {role} {name!r} in\n{obs['axtree']}"
    return line[1]


def play(env: BrowserEnv, script: list[str]) -> dict[str, Any]:
    """Do what a script says; the last observation."""
    assert env._record is not None
    obs: dict[str, Any] = env._record.last.obs
    for text in script:
        obs, *_ = env.step(action_of(obs, text))
    return obs
