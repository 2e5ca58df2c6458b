"""What may be said in a shop."""

from __future__ import annotations

from typing import Any

from sandboxgym.core.errors import InvalidActionError

MAX_ACTION = 10_000
MAX_OBSERVATION = 10_000_000


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
