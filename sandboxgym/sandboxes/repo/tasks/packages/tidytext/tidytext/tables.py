"""Tables of plain text."""

from __future__ import annotations

from collections.abc import Sequence


def align(text: str, width: int, how: str = "left") -> str:
    """Fill a text up with blanks.

    Args:
        text: A text, which stays as it is where it is too long.
        width: How long it has to be.
        how: "left", "right" or "centre"; an odd blank goes to the right of a centred text.

    Raises:
        ValueError: There is no such way to align.
    """
    missing = max(0, width - len(text))
    if how == "left":
        return text + " " * missing
    if how == "right":
        return " " * missing + text
    if how == "centre":
        before = missing // 2
        return " " * before + text + " " * (missing - before)
    raise ValueError(f"unknown alignment: {how}")


def widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """How wide each column has to be. Rows may be of different lengths."""
    found: list[int] = []
    for row in rows:
        for column, cell in enumerate(row):
            if column == len(found):
                found.append(0)
            found[column] = max(found[column], len(cell))
    return found


def table(
    rows: Sequence[Sequence[str]], *, how: Sequence[str] = (), gap: int = 2, header: bool = False
) -> str:
    """Rows of cells as lines; there are no blanks at the end of a line.

    Args:
        rows: The cells.
        how: Alignment of each column; columns that have none are aligned to the left.
        gap: Blanks between two columns.
        header: Whether to draw a line below the first row.
    """
    columns = widths(rows)
    lines = []
    for row in rows:
        cells = []
        for column, cell in enumerate(row):
            alignment = how[column] if column < len(how) else "left"
            cells.append(align(cell, columns[column], alignment))
        lines.append((" " * gap).join(cells).rstrip())
    if header and lines:
        total = sum(columns) + gap * (len(columns) - 1)
        lines.insert(1, "-" * total)
    return "\n".join(lines)
