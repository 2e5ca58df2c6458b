"""The parts of `setup.cfg` and `pyproject.toml` that decide how pytest runs.

An agent may change these files, as solutions do; what they say to pytest stays as it was.
"""

from __future__ import annotations

import configparser
import re
import sys
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SHARED = ("setup.cfg", "pyproject.toml")
"""Names of files that say something to pytest beside other things."""

_HEADER = re.compile(r"^\s*\[+(?P<name>[^\]\n]+)\]+\s*(?:[#;].*)?$")
_OF_PYTEST = re.compile(r"tool:pytest|pytest|tool\.pytest(\..+)?")


def is_shared(name: str) -> bool:
    """Whether a file says something to pytest beside other things; in any case of letters."""
    return PurePosixPath(name).name.lower() in SHARED


def kept(name: str, before: str, after: str) -> str | None:
    """A changed file with what it said to pytest before the change.

    Args:
        name: The file.
        before: Its text before; "" where it was not there.
        after: Its text now.

    Returns:
        The new text, or None where the two parts cannot be told from each other.
    """
    wanted = _settings(name, before)
    for candidate in (after, _exchanged(before, after)):
        if wanted is not None and _settings(name, candidate) == wanted:
            return candidate
    return None


def _settings(name: str, text: str) -> Mapping[str, Any] | None:
    """What a file says to pytest; None where nobody knows."""
    if name.lower().endswith(".toml"):
        try:
            tool = tomllib.loads(text).get("tool", {})
        except tomllib.TOMLDecodeError:
            return None
        return {"pytest": tool["pytest"]} if isinstance(tool, dict) and "pytest" in tool else {}
    parser = configparser.RawConfigParser(strict=False, default_section="\0")
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    return {
        section: dict(parser.items(section))
        for section in parser.sections()
        if _OF_PYTEST.fullmatch(section)
    }


def _exchanged(before: str, after: str) -> str:
    """The new text with the old sections of pytest at the place of the new ones."""
    old = "".join(text for name, text in _sections(before) if _OF_PYTEST.fullmatch(name))
    parts = []
    for name, text in _sections(after):
        if _OF_PYTEST.fullmatch(name):
            parts.append(old)
            old = ""
        else:
            parts.append(text)
    if old and parts and not parts[-1].endswith("\n"):
        parts.append("\n")
    return "".join([*parts, old])


def _sections(text: str) -> list[tuple[str, str]]:
    """The names and texts of sections, the text before the first one too."""
    sections = [("", "")]
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line)
        if header:
            sections.append((header["name"].strip(), ""))
        name, so_far = sections[-1]
        sections[-1] = (name, so_far + line)
    return sections
