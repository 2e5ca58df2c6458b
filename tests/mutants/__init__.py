"""Broken environments, each broken in one way, for the conformance suite to catch.

Each mutant says which check is meant for it. The test demands that exactly this check fails, apart
from those in `also`, which see the same fault from another side. (Checks that build on a failed one
are not run.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym


@dataclass(frozen=True)
class Mutant:
    name: str
    make: Callable[[], gym.Env[Any, Any]]
    caught_by: str
    also: frozenset[str]


MUTANTS: list[Mutant] = []


def mutant(caught_by: str, *, also: tuple[str, ...] = ()) -> Callable[[Any], Any]:
    def register(make: Any) -> Any:
        MUTANTS.append(Mutant(make.__name__, make, caught_by, frozenset(also)))
        return make

    return register
