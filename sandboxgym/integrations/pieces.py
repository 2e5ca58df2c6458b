"""A tree as one row for every segment, for trainers that know one number per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sandboxgym.integrations.growth import Plan, Row


class Piece(NamedTuple):
    """A segment of a tree, with all that came before it as its prompt.

    Attributes:
        prompt: The tokens before it.
        tokens: Its tokens, the model's and the environment's.
        mask: 1 for the model's tokens.
        logprobs: Of the model's tokens, 0 for the environment's.
        credit: Its weight times its advantage, the same for all its tokens.
    """

    prompt: list[int]
    tokens: list[int]
    mask: list[int]
    logprobs: list[float]
    credit: float


def most_pieces(plan: Plan) -> int:
    """How many segments a tree has where no episode ends before its last branch point."""
    levels = range(len(plan.branch_at) + 1)
    return plan.roots * sum(int(plan.members**level) for level in levels)


def pieces(rows: Sequence[Row]) -> list[Piece]:
    """The segments of a tree, every one once, and before those below it."""
    first: dict[tuple[object, ...], tuple[Row, int, int]] = {}
    for row in rows:
        address: tuple[object, ...] = ()
        start = 0
        for segment in row.path:
            address = (*address, segment.member)
            first.setdefault(address, (row, start, start + segment.tokens))
            start += segment.tokens
    found = []
    for address in sorted(first, key=len):
        row, start, end = first[address]
        found.append(
            Piece(
                prompt=row.prompt + row.tokens[:start],
                tokens=row.tokens[start:end],
                mask=row.mask[start:end],
                logprobs=row.logprobs[start:end],
                credit=row.credits[start] if end > start else 0.0,
            )
        )
    return found
