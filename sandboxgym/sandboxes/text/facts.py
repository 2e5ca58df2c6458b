"""Facts as the story tells them: objects with names, and indexes to look facts up by.

The order in which facts answer a question shows in the text, so it is the stock engine's: by the
types of the arguments, and for equal types by the objects' ids.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.text.expressions import Entity
from sandboxgym.sandboxes.text.grounding import Operator, World
from sandboxgym.sandboxes.text.pddl import Domain, Problem
from sandboxgym.sandboxes.text.twl2 import DENIED, Question

MAX_SIGNATURES = 10_000
MAX_INDEXED = 2_000_000

Scope: TypeAlias = tuple[Entity, ...]
_Signature: TypeAlias = tuple[str, ...]
_LookupKey: TypeAlias = tuple[str, _Signature, tuple[int, ...]]

_PUNCTUATION = {"_bar_": "|", "_minus_": "-", "_plus_": "+", "_dot_": ".", "_comma_": ","}


def display_names(ids: Iterable[str]) -> dict[str, str]:
    """Return the names that ALFWorld shows for objects.

    ``apple_bar_...`` becomes ``apple 2``: the part before the first bar and a number, counted down
    in the order of the ids. Without a bar there is no number, only a blank where it would be.
    """
    kinds = {one: _kind(one) for one in sorted(ids)}
    left = Counter(kind for kind in kinds.values() if kind is not None)
    names: dict[str, str] = {}
    for one, kind in kinds.items():
        if kind is None:
            names[one] = f"{_punctuated(one)} "
        else:
            names[one] = f"{_punctuated(kind)} {left[kind]}"
            left[kind] -= 1
    return names


def _kind(one: str) -> str | None:
    kind, bar, _ = one.partition("_bar_")
    if not bar:
        return None
    return f"{kind}basin" if "basin" in one else kind


def _punctuated(text: str) -> str:
    for written, meant in _PUNCTUATION.items():
        text = text.replace(written, meant)
    return text


@dataclass(frozen=True, slots=True)
class Answers:
    """Facts that may answer a question, in the order in which they do, each with its bits.

    A fact is told to be true where all its bits are set; a fact that never changes has none.
    """

    rows: tuple[tuple[Scope, int], ...]
    reads: int
    """The bits of all of them."""


class Facts:
    """All facts that can be told, by predicate, types of the arguments and known arguments."""

    def __init__(self, domain: Domain, problem: Problem, world: World) -> None:
        mentioned = {name for fact in problem.init for name in fact[1:]}
        names = dict(zip(problem.objects, problem.objects, strict=True)) | display_names(mentioned)
        self._entities = {
            name: Entity(name, type_name, names[name])
            for name, type_name in problem.objects.items()
        }
        self._strangers: dict[tuple[str, str], Entity] = {}
        self._subtypes = _subtypes(domain)
        self._rows = self._told(world)
        self._lookups: dict[_LookupKey, dict[Scope, Answers]] = {}
        self._indexed = 0

    def entity(self, name: str, type_name: str) -> Entity:
        """Return an object as it is bound to a variable of a type.

        To the stock engine, an object bound to a variable of another type than its own is another
        object, which no fact is about.
        """
        entity = self._entities[name]
        if entity.type == type_name:
            return entity
        copy = Entity(entity.id, entity.type, entity.name)
        return self._strangers.setdefault((name, type_name), copy)

    def scope(self, operator: Operator) -> Scope:
        """Return the entities that an operator's texts are about, in the order of its arguments."""
        parameters = operator.action.parameters
        return tuple(
            [
                self.entity(name, parameter.type)
                for name, parameter in zip(operator.args, parameters, strict=True)
            ]
        )

    def lookup(self, question: Question, known: tuple[int, ...]) -> dict[Scope, Answers]:
        """Return the answers to a question by the entities at the known positions."""
        types = tuple([arg.type for arg in question.args])
        key = (question.predicate, types, known)
        if key not in self._lookups:
            grouped: dict[Scope, list[tuple[Scope, int]]] = {}
            for signature in self._signatures(types):
                rows = self._rows.get((question.predicate, signature), ())
                self._indexed += 1 + len(rows)
                if self._indexed > MAX_INDEXED:
                    raise GameFileError("the grammar asks too many different things; shorten it")
                for args, mask in rows:
                    at = tuple([args[position] for position in known])
                    grouped.setdefault(at, []).append((args, mask))
            self._lookups[key] = {at: _answers(rows) for at, rows in grouped.items()}
        return self._lookups[key]

    def types(self, question: Question, place: int) -> set[str]:
        """Return the types of the entities that facts answering a question have at a place."""
        signatures = self._signatures(tuple([arg.type for arg in question.args]))
        return {each[place] for each in signatures if (question.predicate, each) in self._rows}

    def knows_type(self, name: str) -> bool:
        """Whether there is a type of that name."""
        return name in self._subtypes

    def _told(self, world: World) -> dict[tuple[str, _Signature], list[tuple[Scope, int]]]:
        table = world.table
        told = [(fact[0], fact[1:], 0) for fact in world.static]
        for fact, bit in table.facts.items():
            told.append((fact[0], fact[1:], 1 << table.hearsay.get(fact, bit)))
        for fact, bit in table.denials.items():
            told.append((DENIED + fact[0], fact[1:], 1 << bit))
        rows: dict[tuple[str, _Signature], list[tuple[Scope, int]]] = {}
        for predicate, names, mask in sorted(told):
            args = tuple([self._entities[name] for name in names])
            signature = tuple([entity.type for entity in args])
            rows.setdefault((predicate, signature), []).append((args, mask))
        return rows

    def _signatures(self, types: _Signature) -> Iterator[_Signature]:
        """Yield the types and all ways to replace them by subtypes, in the stock engine's order.

        It searches breadth-first and forgets to mark where it starts from, so with types three
        levels deep the same signature, and with it the same answer, can come twice.
        """
        yield types
        seen: set[_Signature] = set()
        waiting = deque(self._narrower(types))
        while waiting:
            signature = waiting.popleft()
            yield signature
            for narrower in self._narrower(signature):
                if narrower not in seen:
                    seen.add(narrower)
                    waiting.append(narrower)
            if len(seen) > MAX_SIGNATURES:
                raise GameFileError(f"a query about the types {types} covers too many subtypes")

    def _narrower(self, types: _Signature) -> Iterator[_Signature]:
        for place, name in enumerate(types):
            for subtype in self._subtypes[name]:
                yield (*types[:place], subtype, *types[place + 1 :])


def _subtypes(domain: Domain) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {name: [] for name in domain.supertypes}
    for name in sorted(domain.supertypes):
        for supertype in domain.supertypes[name]:
            if name != "object":
                result[supertype].append(name)
    return result


def _answers(rows: Sequence[tuple[Scope, int]]) -> Answers:
    reads = 0
    for _, mask in rows:
        reads |= mask
    return Answers(tuple(rows), reads)
