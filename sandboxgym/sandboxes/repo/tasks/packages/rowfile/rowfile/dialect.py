"""How a table is written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """How a table is written down.

    Attributes:
        delimiter: What stands between two fields.
        quote: What stands around a field that has a delimiter in it.
        comment: Lines that start with it are left out; empty for no such lines.
        trim: Whether blanks around fields without quotes are left out.
    """

    delimiter: str = ","
    quote: str = '"'
    comment: str = ""
    trim: bool = False


def guess_delimiter(text: str, candidates: Sequence[str] = (",", ";", "\t", "|")) -> str:
    """The delimiter that all lines have equally often, and of those the one they have most.

    Args:
        text: The start of a table, without quotes.
        candidates: What is thought of; the first of them where nothing fits.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    best = candidates[0]
    most = 0
    for candidate in candidates:
        counts = {line.count(candidate) for line in lines}
        if len(counts) == 1:
            count = counts.pop()
            if count > most:
                best = candidate
                most = count
    return best
