"""How a check says what it found: it raises one of these, or returns where all is well."""

from __future__ import annotations

from sandboxgym.core.digest import Difference


class CheckFailedError(Exception):
    """The environment does not do what the check wants.

    Attributes:
        difference: The first leaf that differs, where two things were compared.
        step: The number of actions of the episode after which that shows, where it is known.
    """

    def __init__(
        self, message: str, difference: Difference | None = None, step: int | None = None
    ) -> None:
        super().__init__(message)
        self.difference = difference
        self.step = step


class CheckNotRunError(Exception):
    """The check does not apply or could not be run; the message says why."""


class CheckWarnedError(Exception):
    """Nothing is proven wrong, but the author should know."""
