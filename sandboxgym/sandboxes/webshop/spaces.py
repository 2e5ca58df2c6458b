"""The space of what is said in a shop."""

from __future__ import annotations

import string
from typing import Any

from gymnasium import spaces

from sandboxgym.core.errors import InvalidActionError

MAX_ACTION = 10_000
MAX_OBSERVATION = 10_000_000


class Texts(spaces.Text):
    """Any text up to a length; products are described in all the scripts of the world.

    Samples are of printable ASCII.
    """

    def __init__(self, max_length: int, seed: int | None = None) -> None:
        super().__init__(max_length, min_length=0, charset=string.printable, seed=seed)

    def contains(self, x: Any) -> bool:
        """Whether `x` is a text that is short enough."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.max_length})"

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self.max_length == other.max_length

    __hash__ = None  # type: ignore[assignment]  # as spaces are: they are mutable


def check_action(action: Any) -> None:
    """Refuse what is no text of Unicode.

    Raises:
        InvalidActionError: It is something else.
    """
    if not isinstance(action, str):
        raise InvalidActionError(
            f"an action is a text such as 'search[red shoes]'; got {type(action).__name__}"
        )
    try:
        action.encode()
    except UnicodeEncodeError:
        raise InvalidActionError(
            f"the action {action!r:.200} holds half a character (a surrogate)"
        ) from None
