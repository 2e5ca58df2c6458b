"""Working with the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def to_records(rows: Sequence[Sequence[str]], *, missing: str = "") -> list[dict[str, str]]:
    """Rows below a header, as dictionaries.

    Args:
        rows: The first of them has the names of the columns. What later rows have too much is
            left out.
        missing: What stands for fields that a row does not have.

    Raises:
        ValueError: Two columns have the same name.
    """
    if not rows:
        return []
    header = list(rows[0])
    if len(set(header)) < len(header):
        raise ValueError("two columns have the same name")
    records = []
    for row in rows[1:]:
        padded = list(row) + [missing] * (len(header) - len(row))
        records.append(dict(zip(header, padded, strict=False)))
    return records


def guess_type(values: Sequence[str]) -> type:
    """The narrowest of int, float and str that all values have; empty ones do not count."""
    present = [value for value in values if value != ""]
    if not present:
        return str
    for kind in (int, float):
        if all(_fits(value, kind) for value in present):
            return kind
    return str


def sort_rows(
    rows: Sequence[Sequence[str]], column: int, *, reverse: bool = False, header: bool = True
) -> list[list[str]]:
    """Rows in the order of a column: by number where it has only numbers, else by text.

    Args:
        rows: The table, which stays as it is.
        column: By which to sort. Rows with nothing there come last in any order.
        reverse: Whether the largest comes first.
        header: Whether the first row stays where it is.
    """
    body = [list(row) for row in (rows[1:] if header else rows)]
    kind = guess_type([row[column] for row in body])
    filled = [row for row in body if row[column] != ""]
    empty = [row for row in body if row[column] == ""]
    filled.sort(key=lambda row: kind(row[column]), reverse=reverse)
    top = [list(row) for row in rows[:1]] if header else []
    return top + filled + empty


def totals(rows: Sequence[Sequence[str]]) -> list[Any]:
    """The sum of each column below the header; None for columns of text."""
    header, body = rows[0], rows[1:]
    sums: list[Any] = []
    for column in range(len(header)):
        values = [row[column] for row in body if column < len(row)]
        kind = guess_type(values)
        if kind is str:
            sums.append(None)
        else:
            sums.append(sum(kind(value) for value in values if value != ""))
    return sums


def _fits(value: str, kind: type) -> bool:
    try:
        kind(value)
    except ValueError:
        return False
    return True
