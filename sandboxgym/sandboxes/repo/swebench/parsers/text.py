"""Lines of a log, without what only a terminal understands."""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


def lines_of(log: str) -> list[str]:
    """The lines, without colours and carriage returns. Only a newline ends one."""
    return [line.rstrip("\r") for line in _ESCAPES.sub("", log).split("\n")]
