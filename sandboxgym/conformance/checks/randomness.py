"""Random generators: put back exactly by a restore, and started anew by `seed=`.

The other checks compare what an environment shows, and say that something is wrong. This one looks
at the generators themselves, and says what: those that hang on the environment's attributes, and
the global ones of Python and numpy.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Case, Lab, Script
from sandboxgym.conformance.outcome import CheckFailedError
from sandboxgym.conformance.subject import Subject
from sandboxgym.core.digest import first_difference
from sandboxgym.core.stack import Stack

NEW_SEEDS = (101, 102, 103)
WALK_DEPTH = 4

States: TypeAlias = dict[str, Any]
"""States of generators, by where they were found."""


@check("16-randomness", needs=("04",))
def randomness(lab: Lab) -> str | None:
    """Twins need the same luck, and branches with a seed of their own need luck of their own."""
    changed = False
    maker = lab.make()
    for script in lab.in_turn():
        case, draws = _watch(lab, maker, script)
        _check_put_back(maker, case, draws)
        for seed in NEW_SEEDS:
            _check_started_anew(maker, case, draws, seed)
            changed |= _changes_the_future(maker, case, seed)
    return None if changed else "a new seed changed nothing that followed: no randomness was seen"


@dataclass(frozen=True)
class Draw:
    """A generator that an episode draws from.

    Attributes:
        path: Where it was found.
        start: Its state at the moment of the snapshot.
        number: How many actions after that moment it is drawn from for the first time.
    """

    path: str
    start: Any
    number: int


def _watch(lab: Lab, maker: Subject, script: Script) -> tuple[Case, list[Draw]]:
    """Capture a moment, and see from which generators the episode draws after it."""
    case = lab.case(maker, script, script.moments[0])
    maker.reset(script.seed)
    maker.play(case.past_actions)
    start = before = _generators(maker)
    draws: dict[str, Draw] = {}
    for number, action in enumerate(case.rest, start=1):
        maker.step(action)
        after = _generators(maker)
        for path in start:
            if path not in draws and first_difference(before.get(path), after.get(path)):
                draws[path] = Draw(path, start[path], number)
        before = after
    return case, list(draws.values())


def _check_put_back(maker: Subject, case: Case, draws: list[Draw]) -> None:
    maker.restore(case.snapshot)
    restored = _generators(maker)
    for draw in draws:
        if first_difference(draw.start, restored.get(draw.path)):
            raise CheckFailedError(
                f"restore does not put back the generator {draw.path}, and the environment draws "
                "from it: use self.np_random, or make it part of get_state and set_state",
                step=case.at,
            )


def _check_started_anew(maker: Subject, case: Case, draws: list[Draw], seed: int) -> None:
    """Each generator gets a new state from the seed, and is still the one that is drawn from.

    Up to the first draw a future is the same under any seed, so the same action draws then.
    """
    maker.restore(case.snapshot, seed=seed)
    first = _generators(maker)
    maker.restore(case.snapshot, seed=seed)
    again = _generators(maker)
    for draw in draws:
        if not first_difference(draw.start, first.get(draw.path)):
            raise CheckFailedError(
                f"restore(seed={seed}) leaves the generator {draw.path} as it was, and the "
                "environment draws from it: override reseed",
                step=case.at,
            )
        difference = first_difference(first[draw.path], again.get(draw.path))
        if difference is not None:
            message = f"restore(seed={seed}), done twice, starts {draw.path} differently"
            raise CheckFailedError(message, difference, case.at)
    if draws:
        earliest = min(draws, key=lambda draw: draw.number)
        maker.play(case.rest[: earliest.number])
        if not first_difference(again[earliest.path], _generators(maker).get(earliest.path)):
            raise CheckFailedError(
                f"after restore(seed={seed}) the environment no longer draws from "
                f"{earliest.path}: it kept another generator, which reseed does not reach",
                step=case.at + earliest.number,
            )


def _changes_the_future(maker: Subject, case: Case, seed: int) -> bool:
    maker.restore(case.snapshot, seed=seed)
    return any(
        first_difference(expected, maker.step(action))
        for action, expected in zip(case.rest, case.future, strict=True)
    )


def _generators(subject: Subject) -> States:
    """States of the global generators and of all that hang on the environment, by where."""
    found = dict(_walk(Stack.of(subject.env).base, "env", set()))
    found["random (Python's global generator)"] = random.getstate()
    found["numpy.random (numpy's global generator)"] = np.random.get_state()
    return found


def _walk(thing: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, np.random.Generator):
        yield path, thing.bit_generator.state
    elif isinstance(thing, np.random.RandomState):
        yield path, thing.get_state()
    elif isinstance(thing, random.Random):
        yield path, thing.getstate()
    elif id(thing) not in seen and path.count(".") + path.count("[") < WALK_DEPTH:
        seen.add(id(thing))
        for name, part in _parts(thing):
            yield from _walk(part, path + name, seen)


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, dict):
        yield from ((f"[{key!r}]", part) for key, part in thing.items())
    elif isinstance(thing, list | tuple):
        yield from ((f"[{index}]", part) for index, part in enumerate(thing))
    elif hasattr(thing, "__dict__") and not isinstance(thing, type | ModuleType):
        yield from ((f".{name}", part) for name, part in vars(thing).items())
