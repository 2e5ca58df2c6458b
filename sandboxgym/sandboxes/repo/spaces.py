"""Spaces of what a shell takes and prints."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces

from sandboxgym.core.errors import InvalidActionError
from sandboxgym.core.spaces import AnyText

Action: TypeAlias = str | dict[str, Any]

MAX_COMMAND = 1_000_000
SUBMIT = "submit"
_STATUSES = 256


class ShellActions(AnyText):
    """Commands as strings or `{"command": string}`, and `{"submit": True}`.

    Samples are strings.
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(MAX_COMMAND, seed=seed)

    def contains(self, x: Any) -> bool:
        """Whether a shell environment takes it as an action."""
        try:
            parsed(x)
        except InvalidActionError:
            return False
        return True


def parsed(action: Action) -> str | None:
    """The command of an action, or None for a submission.

    Raises:
        InvalidActionError: It is neither.
    """
    keys = list(action) if isinstance(action, dict) else []
    if keys == [SUBMIT] and isinstance(action[SUBMIT], bool | np.bool_) and action[SUBMIT]:  # type: ignore[index]
        return None
    command = action["command"] if keys == ["command"] else action  # type: ignore[index]
    if not isinstance(command, str):
        raise InvalidActionError(
            f"an action is a command as a string, {{'command': string}} or {{'submit': True}}; "
            f"got {action!r:.200}"
        )
    if len(command) > MAX_COMMAND or "\0" in command:
        raise InvalidActionError(
            f"a command has no NUL and at most {MAX_COMMAND} characters; this one has "
            f"{len(command)}"
        )
    return command


def observation_space(max_output: int) -> spaces.Dict:
    """What an environment with a shell shows."""
    return spaces.Dict(
        {
            "output": AnyText(max_output),
            "returncode": spaces.Discrete(_STATUSES),
            "timed_out": spaces.Discrete(2),
            "truncated": spaces.Discrete(2),
            "elided_chars": spaces.Discrete(2**62),
        }
    )
