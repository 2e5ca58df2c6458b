"""Telling: the parts that a composed template consists of, and what is remembered of it.

The stock engine answers a query by going through the facts, binding one variable after the other,
with one rule that is easy to overlook: two variables never stand for the same object.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.text.expressions import Entity, Evaluate, as_text
from sandboxgym.sandboxes.text.facts import Answers, Facts, Scope
from sandboxgym.sandboxes.text.memory import Memory
from sandboxgym.sandboxes.text.twl2 import Question

MAX_TELLING_WORK = 200_000

PartialScope: TypeAlias = "tuple[Entity | None, ...]"

NOTHING: frozenset[int] = frozenset()


class Telling:
    """A state that is being told, and how much work may still be put into it."""

    __slots__ = ("_left", "state")

    def __init__(self, state: int) -> None:
        self.state = state
        self._left = MAX_TELLING_WORK

    def spend(self, work: int = 1) -> None:
        """Take work off; the text of a well-meant grammar needs a small part of what there is."""
        self._left -= work
        if self._left < 0:
            raise GameFileError("the grammar expands without end or nearly so; make it shorter")


class Composed(Protocol):
    """A part of a text that can be told in any state."""

    @property
    def mentions(self) -> frozenset[int]:
        """The places in the scope whose entities make a difference to the text."""

    def tell(self, telling: Telling, scope: Scope) -> str:
        """Return the text for the entities in scope."""

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        """Return all bits of the state that the text may depend on; None is any entity."""


@dataclass(frozen=True, slots=True)
class Words:
    """Words that are always the same."""

    text: str
    mentions: frozenset[int] = NOTHING

    def tell(self, telling: Telling, scope: Scope) -> str:
        """Return the words."""
        telling.spend(len(self.text))
        return self.text

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        """Words depend on nothing."""
        return 0


@dataclass(frozen=True, slots=True)
class Print:
    """The value of an expression."""

    evaluate: Evaluate
    mentions: frozenset[int]

    def tell(self, telling: Telling, scope: Scope) -> str:
        """Return the value as text."""
        text = as_text(self.evaluate(scope))
        telling.spend(len(text))
        return text

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        """Names do not change."""
        return 0


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts one after the other."""

    parts: tuple[Composed, ...]
    mentions: frozenset[int]

    def tell(self, telling: Telling, scope: Scope) -> str:
        """Return the parts joined."""
        telling.spend()
        return "".join([part.tell(telling, scope) for part in self.parts])

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        """Return what the parts read."""
        telling.spend()
        bits = 0
        for part in self.parts:
            bits |= part.reads(telling, scope)
        return bits


@dataclass(frozen=True, slots=True)
class Match:
    """One question of a query; the variables up to `known` have an entity before it is asked."""

    facts: Facts
    question: Question
    slots: tuple[int, ...]
    """Where the scope has the entity of each argument."""
    known: int
    key: tuple[int, ...]
    """The slots of the known arguments."""
    lookup: dict[Scope, Answers]
    """Answers by the entities in these slots."""
    mentions: frozenset[int]

    def bind(self, telling: Telling, scope: Scope) -> Iterator[Scope]:
        """Yield the scope extended by each answer."""
        answers = self.lookup.get(tuple([scope[slot] for slot in self.key]))
        if answers is None:
            return
        telling.spend(len(answers.rows))
        state = telling.state
        for args, mask in answers.rows:
            if state & mask == mask:
                extended = self._extend(scope, args)
                if extended is not None:
                    yield extended

    def _extend(self, scope: Scope, args: Scope) -> Scope | None:
        for slot, entity in zip(self.slots, args, strict=True):
            if slot < len(scope):
                if scope[slot] is not entity:
                    return None
            elif entity in scope:  # another variable stands for it
                return None
            else:
                scope = (*scope, entity)
        return scope

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        """Return the bits of all facts that may answer."""
        telling.spend()
        positions = []
        key: list[Entity] = []
        for position, slot in enumerate(self.slots):
            entity = scope[slot] if slot < self.known else None
            if entity is not None:
                positions.append(position)
                key.append(entity)
        answers = self.facts.lookup(self.question, tuple(positions)).get(tuple(key))
        return answers.reads if answers else 0


@dataclass(frozen=True, slots=True)
class Query:
    """Questions that must all have an answer."""

    matches: tuple[Match, ...]
    size: int
    """The length of the scope when all is answered."""
    mentions: frozenset[int]

    def answers(self, telling: Telling, scope: Scope, place: int = 0) -> Iterator[Scope]:
        """Yield the scope extended by each answer to all questions from `place` on."""
        if place == len(self.matches):
            yield scope
            return
        for extended in self.matches[place].bind(telling, scope):
            yield from self.answers(telling, extended, place + 1)

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        """Return what the questions read."""
        scope = self.extended(scope)
        bits = 0
        for match in self.matches:
            bits |= match.reads(telling, scope)
        return bits

    def extended(self, scope: PartialScope) -> PartialScope:
        """Return a scope with unknown entities for the variables that the query binds."""
        return (*scope, *[None] * (self.size - len(scope)))


@dataclass(frozen=True, slots=True)
class Choice:
    """A symbol: the first alternative whose condition has an answer is told."""

    name: str
    alternatives: tuple[tuple[Query | None, Composed], ...]
    mentions: frozenset[int]

    def tell(self, telling: Telling, scope: Scope) -> str:
        """Return the first alternative that has no condition or one with an answer."""
        telling.spend()
        for condition, part in self.alternatives:
            if condition is None or any(True for _ in condition.answers(telling, scope)):
                return part.tell(telling, scope)
        raise GameFileError(
            f"no alternative of symbol {self.name!r} has a condition that holds; "
            "add a last one without condition"
        )

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        """Return what the conditions and all alternatives read."""
        telling.spend()
        bits = 0
        for condition, part in self.alternatives:
            bits |= part.reads(telling, scope)
            if condition is not None:
                bits |= condition.reads(telling, scope)
        return bits


@dataclass(frozen=True, slots=True)
class Missing:
    """A symbol of lists that the grammar lacks, which matters only where a list needs it."""

    name: str
    mentions: frozenset[int] = NOTHING

    def tell(self, telling: Telling, scope: Scope) -> str:
        """Fail: here the symbol is needed."""
        raise GameFileError(f"the grammar has no symbol {self.name!r}; add it")

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        """Nothing is told."""
        return 0


@dataclass(frozen=True, slots=True)
class Each:
    """A part told once for each answer to a query, or once if there is none."""

    part: Composed
    query: Query | None
    mentions: frozenset[int]

    def pieces(self, telling: Telling, scope: Scope) -> list[str]:
        """Return the text for each answer."""
        if self.query is None:
            return [self.part.tell(telling, scope)]
        answers = self.query.answers(telling, scope)
        return [self.part.tell(telling, extended) for extended in answers]

    def tell(self, telling: Telling, scope: Scope) -> str:
        """Return the texts for all answers joined."""
        return "".join(self.pieces(telling, scope))

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        """Return what the query and the part read."""
        if self.query is None:
            return self.part.reads(telling, scope)
        inner = self.part.reads(telling, self.query.extended(scope))
        return self.query.reads(telling, scope) | inner


@dataclass(frozen=True, slots=True)
class Listing:
    """The answers as a list with separators."""

    each: Each
    empty: Composed
    separator: Composed
    last_separator: Composed
    mentions: frozenset[int]

    def tell(self, telling: Telling, scope: Scope) -> str:
        """Return the list, with separators as many answers need."""
        pieces = self.each.pieces(telling, scope)
        if not pieces:
            return self.empty.tell(telling, scope)
        if len(pieces) == 1:
            return pieces[0]
        separator = self.separator.tell(telling, scope) if len(pieces) > 2 else ""
        return separator.join(pieces[:-1]) + self.last_separator.tell(telling, scope) + pieces[-1]

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        """Return what the answers and the separators read."""
        bits = self.each.reads(telling, scope)
        for part in (self.empty, self.separator, self.last_separator):
            bits |= part.reads(telling, scope)
        return bits


class Text:
    """A composed template, with a memory of what it said.

    A text depends on few of the entities in scope and, given these, on few of the state's bits.
    """

    def __init__(self, composed: Composed, size: int) -> None:
        """Take a template composed for a scope of a certain size."""
        self._composed = composed
        self._mentions = tuple(sorted(slot for slot in composed.mentions if slot < size))
        self._unmentioned = (None,) * size
        self._reads: dict[Scope, int] = {}
        self._told: Memory[tuple[Scope, int], str] = Memory()

    def tell(self, state: int, scope: Scope) -> str:
        """Return the text in a state for the entities in scope."""
        mentioned = tuple([scope[slot] for slot in self._mentions])
        reads = self._reads.get(mentioned)
        if reads is None:
            reads = self._reads[mentioned] = self.reads(mentioned)
        key = (mentioned, state & reads)
        text = self._told.get(key)
        if text is None:
            text = self._told.keep(key, self._composed.tell(Telling(state), scope))
        return text

    def reads(self, mentioned: Scope | None = None) -> int:
        """Return bits of the state such that the text is the same wherever they are the same.

        Args:
            mentioned: The entities that the text mentions; any, if not given.
        """
        scope: list[Entity | None] = list(self._unmentioned)
        for slot, entity in zip(self._mentions, mentioned or (), strict=False):
            scope[slot] = entity
        try:
            return self._composed.reads(Telling(0), tuple(scope))
        except GameFileError:
            return -1  # more than can be worked out: all bits
