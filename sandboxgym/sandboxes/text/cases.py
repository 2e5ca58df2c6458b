"""Taking conditions and effects apart: disjuncts as cases, existential variables as parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.text.pddl import (
    And,
    Condition,
    Effect,
    Exists,
    ForAll,
    Literal,
    Or,
    Typed,
)

MAX_CASES = 500
MAX_CASE_SIZE = 200


@dataclass(frozen=True, slots=True)
class Case:
    """One disjunct of a condition: literals over the parameters, and what must hold for all."""

    parameters: tuple[Typed, ...] = ()
    positive: tuple[Literal, ...] = ()
    negative: tuple[Literal, ...] = ()
    universal: tuple[ForAll, ...] = ()

    @property
    def size(self) -> int:
        """How much must be bound and checked."""
        literals = len(self.positive) + len(self.negative) + len(self.universal)
        return len(self.parameters) + literals

    def __add__(self, other: Case) -> Case:
        """Return the conjunction of two cases."""
        return Case(
            self.parameters + other.parameters,
            self.positive + other.positive,
            self.negative + other.negative,
            self.universal + other.universal,
        )


class Splitter:
    """Splits conditions into cases, giving every quantified variable a name of its own."""

    def __init__(self) -> None:
        self._fresh = count()

    def condition(self, condition: Condition) -> list[Case]:
        """Return the cases of a condition; it holds if one of them does for some parameters."""
        if isinstance(condition, Literal):
            if condition.positive:
                return [Case(positive=(condition,))]
            return [Case(negative=(condition,))]
        if isinstance(condition, ForAll):
            return [Case(universal=(condition,))]
        if isinstance(condition, Exists):
            parameters, names = self._renamed(condition.parameters)
            inner = self.condition(rename(condition.part, names))
            return [Case(parameters) + case for case in inner]
        if isinstance(condition, Or):
            return _limited(case for part in condition.parts for case in self.condition(part))
        cases = [Case()]
        for part in condition.parts:
            more = self.condition(part)
            cases = _limited(case + other for case in cases for other in more)
        return cases

    def effect(self, effect: Effect) -> list[tuple[Case, Literal]]:
        """Return the cases in which an effect takes place, each with what it changes then."""
        parameters, names = self._renamed(effect.parameters)
        condition = rename(effect.condition, names)
        literal = rename_literal(effect.literal, names)
        return [(Case(parameters) + case, literal) for case in self.condition(condition)]

    def _renamed(self, parameters: tuple[Typed, ...]) -> tuple[tuple[Typed, ...], dict[str, str]]:
        # No name that was read from a file has a blank in it.
        names = {
            parameter.name: f"{parameter.name} {next(self._fresh)}" for parameter in parameters
        }
        return tuple(Typed(names[old.name], old.type) for old in parameters), names


def _limited(cases: Iterable[Case]) -> list[Case]:
    result: list[Case] = []
    for case in cases:
        result.append(case)
        if len(result) > MAX_CASES or case.size > MAX_CASE_SIZE:
            raise GameFileError(
                f"a condition has more than {MAX_CASES} cases once its 'or's are multiplied out, "
                f"or a case with more than {MAX_CASE_SIZE} literals and variables; simplify it"
            )
    return result


def rename_literal(literal: Literal, names: dict[str, str]) -> Literal:
    """Return the literal with variables renamed."""
    args = tuple(names.get(arg, arg) for arg in literal.args)
    return Literal(literal.predicate, args, literal.positive)


def rename(condition: Condition, names: dict[str, str]) -> Condition:
    """Return the condition with its free variables renamed."""
    if isinstance(condition, Literal):
        return rename_literal(condition, names)
    if isinstance(condition, (And, Or)):
        return type(condition)(tuple(rename(part, names) for part in condition.parts))
    bound = {parameter.name for parameter in condition.parameters}
    free = {old: new for old, new in names.items() if old not in bound}
    return type(condition)(condition.parameters, rename(condition.part, free))
