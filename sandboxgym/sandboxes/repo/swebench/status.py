"""What can become of a test."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import TypeAlias


class Status(enum.Enum):
    """What became of a test."""

    PASSED = "PASSED"
    XFAIL = "XFAIL"
    XPASS = "XPASS"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"
    ERROR = "ERROR"


Results: TypeAlias = dict[str, Status]
"""What became of each test, by its name."""

_FROM_BEST = list(Status)


def worst(statuses: Iterable[Status]) -> Status:
    """The status that counts where there are several for one test."""
    return max(statuses, key=_FROM_BEST.index)


def note(results: Results, name: str, status: Status) -> None:
    """Write down a status; a better one of the same test is not forgotten, but does not count."""
    results[name] = worst((results.get(name, status), status))
