"""Where the mouse is, and what is held down."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Hands:
    """The agent's hands, as it were.

    Attributes:
        x: Where the mouse is, in pixels from the left.
        y: From the top.
        held: Keys that are held down, in the order in which they were pressed.
        buttons: Bits of the mouse buttons that are held down.
    """

    x: float = 0.0
    y: float = 0.0
    held: list[str] = field(default_factory=list)
    buttons: int = 0

    @property
    def empty(self) -> bool:
        """Whether nothing is held down."""
        return not self.held and not self.buttons
