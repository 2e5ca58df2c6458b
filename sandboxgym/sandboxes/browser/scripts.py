"""The scripts that lie beside the modules of this package."""

from __future__ import annotations

import functools
from importlib import resources


@functools.cache
def script(name: str) -> str:
    """A script without the comment that it begins with."""
    text = resources.files(__package__).joinpath(name).read_text("utf-8")
    lines = text.splitlines(keepends=True)
    while lines[0].startswith("//"):
        del lines[0]
    return "".join(lines).strip()
