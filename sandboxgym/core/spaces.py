"""Spaces that Gymnasium does not have."""

from __future__ import annotations

import string
from typing import Any

from gymnasium import spaces


class AnyText(spaces.Text):
    """Any string up to a length: what is typed and told is not limited to a set of characters.

    Samples are of printable ASCII.
    """

    def __init__(self, max_length: int, seed: int | None = None) -> None:
        super().__init__(max_length, min_length=0, charset=string.printable, seed=seed)

    def contains(self, x: Any) -> bool:
        """Whether `x` is a string that is short enough."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.max_length})"

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self.max_length == other.max_length

    __hash__ = None  # type: ignore[assignment]  # as spaces are: they are mutable
