"""What goes to and fro in a text world: the spaces of observations and commands, and a check."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces

from sandboxgym.core.errors import InvalidActionError

_ASCII = "".join(map(chr, range(32, 127)))
_LATIN = bytes(range(0x80, 0x100)).decode("cp1252", errors="ignore")  # with dashes and quotes
_CONTROL = "\n\t\r"


def observations() -> spaces.Text:
    """What a game may say."""
    return spaces.Text(max_length=50_000, min_length=0, charset=_ASCII + _LATIN + _CONTROL)


def commands() -> spaces.Text:
    """What a player may type."""
    return spaces.Text(max_length=200, min_length=0, charset=_ASCII)


def command_of(action: Any) -> str:
    """An action as a command, without the space around it.

    Raises:
        InvalidActionError: It is no text.
    """
    if not isinstance(action, str):
        raise InvalidActionError(
            f"an action is a command as str, such as 'look'; got {type(action).__name__}"
        )
    try:
        action.encode()
    except UnicodeEncodeError:
        raise InvalidActionError(
            f"the command {action!r} holds half a character (a surrogate)"
        ) from None
    return action.strip()
