"""White space at the start of lines."""

from __future__ import annotations


def margin(text: str) -> int:
    """How many blanks all lines of a text start with; lines without text do not count."""
    widths = [len(line) - len(line.lstrip(" ")) for line in text.splitlines() if line.strip()]
    return min(widths, default=0)


def dedent(text: str) -> str:
    """Remove the margin that all lines share. Lines without text become empty."""
    width = margin(text)
    lines = [line[width:] if line.strip() else "" for line in text.splitlines()]
    ending = "\n" if text.endswith("\n") else ""
    return "\n".join(lines) + ending


def indent(text: str, prefix: str, *, empty: bool = False) -> str:
    """Put a prefix in front of every line.

    Args:
        text: The lines.
        prefix: What is put there.
        empty: Whether lines without text get it too.
    """
    lines = []
    for line in text.splitlines(keepends=True):
        if empty or line.strip():
            lines.append(prefix + line)
        else:
            lines.append(line)
    return "".join(lines)
