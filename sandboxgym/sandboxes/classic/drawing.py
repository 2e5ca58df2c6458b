"""Gymnasium's environments that draw themselves with pygame: what they draw on is no state."""

from __future__ import annotations

from typing import Any, ClassVar

from sandboxgym.core.errors import UncapturedStateError
from sandboxgym.mechanisms.attributes import Attributes

CANVASES = frozenset({"screen", "surf", "window", "window_surface", "clock"})


class DrawnState(Attributes):
    """All attributes, but those that the environment draws on.

    They are made by the first `render`, and anew by the next one where they are missing. That they
    hold nothing else is checked each time.

    Attributes:
        drawn: Names of attributes that hold pygame's objects, or nothing yet.
    """

    covers_subclasses: ClassVar[bool] = False
    drawn: ClassVar[frozenset[str]] = CANVASES
    left_alone: ClassVar[frozenset[str]] = CANVASES

    def get(self, env: Any) -> dict[str, Any]:
        """Attributes, unless one is not what it seems to be."""
        for name in self.drawn & vars(env).keys():
            if not _is_drawn(getattr(env, name)):
                raise UncapturedStateError(
                    f"{type(env).__name__}.{name} is {getattr(env, name)!r}, and not something to "
                    "draw on"
                )
        return super().get(env)


def _is_drawn(value: Any) -> bool:
    """Whether a value is pygame's, several of those, or nothing yet."""
    if isinstance(value, list):
        return all(map(_is_drawn, value))
    if isinstance(value, dict):
        return all(map(_is_drawn, value.values()))
    return value is None or type(value).__module__.partition(".")[0] == "pygame"
