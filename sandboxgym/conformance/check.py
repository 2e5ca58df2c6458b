"""A check: a name, a reason, and a function that tries an environment out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sandboxgym.conformance.lab import Lab


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: Number and short name.
        why: What goes wrong for users of an environment that does not pass.
        run: Does it: raises an exception of `sandboxgym.conformance.outcome`, or returns, perhaps
            with a note for the report. What else it raises is a failure too.
        needs: Numbers of the checks without which this one would only repeat their failure.
    """

    name: str
    why: str
    run: Callable[[Lab], str | None]
    needs: tuple[str, ...]

    @property
    def number(self) -> str:
        """The check's number, as text."""
        return self.name.partition("-")[0]


def check(
    name: str, *, needs: tuple[str, ...] = ("00",)
) -> Callable[[Callable[[Lab], str | None]], Check]:
    """Make a function into a check; its docstring is the reason."""
    return lambda run: Check(name, run.__doc__ or "", run, needs)
