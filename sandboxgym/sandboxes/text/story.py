"""Telling: a game's templates, composed once so that any state can be told quickly.

The stock engine answers a grammar's queries by going through its facts in order of their arguments,
binding one variable after the other, with one rule that is easy to overlook: two variables never
stand for the same object. The same is done here with facts indexed beforehand.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.text.expressions import (
    Entity,
    Evaluate,
    as_text,
    compile_expression,
)
from sandboxgym.sandboxes.text.grounding import Operator, World
from sandboxgym.sandboxes.text.memory import Memory
from sandboxgym.sandboxes.text.pddl import Domain, Problem
from sandboxgym.sandboxes.text.twl2 import (
    Each,
    Grammar,
    Listing,
    Part,
    Placeholder,
    Print,
    Query,
    Question,
    Symbol,
    Template,
    Words,
)

MAX_DEPTH = 50
MAX_PARTS = 20_000
MAX_SIGNATURES = 10_000
MAX_INDEXED = 2_000_000
MAX_TELLING_WORK = 200_000

Scope: TypeAlias = tuple[Entity, ...]
PartialScope: TypeAlias = "tuple[Entity | None, ...]"
_Signature: TypeAlias = tuple[str, ...]
_LookupKey: TypeAlias = tuple[str, _Signature, tuple[int, ...]]

_DENIED = "not_"
_PUNCTUATION = {"_bar_": "|", "_minus_": "-", "_plus_": "+", "_dot_": ".", "_comma_": ","}


# --- What there is to tell -----------------------------------------------------------------------


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
            told.append((_DENIED + fact[0], fact[1:], 1 << bit))
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


_NOTHING: frozenset[int] = frozenset()


# --- Composed templates --------------------------------------------------------------------------


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
class _Words:
    text: str
    mentions: frozenset[int] = _NOTHING

    def tell(self, telling: Telling, scope: Scope) -> str:
        telling.spend(len(self.text))
        return self.text

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class _Print:
    evaluate: Evaluate
    mentions: frozenset[int]

    def tell(self, telling: Telling, scope: Scope) -> str:
        text = as_text(self.evaluate(scope))
        telling.spend(len(text))
        return text

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class _Sequence:
    parts: tuple[Composed, ...]
    mentions: frozenset[int]

    def tell(self, telling: Telling, scope: Scope) -> str:
        telling.spend()
        return "".join([part.tell(telling, scope) for part in self.parts])

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        telling.spend()
        bits = 0
        for part in self.parts:
            bits |= part.reads(telling, scope)
        return bits


@dataclass(frozen=True, slots=True)
class _Match:
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
class _Query:
    matches: tuple[_Match, ...]
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
        scope = self.extended(scope)
        bits = 0
        for match in self.matches:
            bits |= match.reads(telling, scope)
        return bits

    def extended(self, scope: PartialScope) -> PartialScope:
        """Return a scope with unknown entities for the variables that the query binds."""
        return (*scope, *[None] * (self.size - len(scope)))


@dataclass(frozen=True, slots=True)
class _Choice:
    """A symbol: the first alternative whose condition has an answer is told."""

    name: str
    alternatives: tuple[tuple[_Query | None, Composed], ...]
    mentions: frozenset[int]

    def tell(self, telling: Telling, scope: Scope) -> str:
        telling.spend()
        for condition, part in self.alternatives:
            if condition is None or any(True for _ in condition.answers(telling, scope)):
                return part.tell(telling, scope)
        raise GameFileError(
            f"no alternative of symbol {self.name!r} has a condition that holds; "
            "add a last one without condition"
        )

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        telling.spend()
        bits = 0
        for condition, part in self.alternatives:
            bits |= part.reads(telling, scope)
            if condition is not None:
                bits |= condition.reads(telling, scope)
        return bits


@dataclass(frozen=True, slots=True)
class _Missing:
    """A symbol of lists that the grammar lacks, which matters only where a list needs it."""

    name: str
    mentions: frozenset[int] = _NOTHING

    def tell(self, telling: Telling, scope: Scope) -> str:
        raise GameFileError(f"the grammar has no symbol {self.name!r}; add it")

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class _Each:
    part: Composed
    query: _Query | None
    mentions: frozenset[int]

    def pieces(self, telling: Telling, scope: Scope) -> list[str]:
        if self.query is None:
            return [self.part.tell(telling, scope)]
        answers = self.query.answers(telling, scope)
        return [self.part.tell(telling, extended) for extended in answers]

    def tell(self, telling: Telling, scope: Scope) -> str:
        return "".join(self.pieces(telling, scope))

    def reads(self, telling: Telling, scope: PartialScope) -> int:
        if self.query is None:
            return self.part.reads(telling, scope)
        inner = self.part.reads(telling, self.query.extended(scope))
        return self.query.reads(telling, scope) | inner


@dataclass(frozen=True, slots=True)
class _Listing:
    each: _Each
    empty: Composed
    separator: Composed
    last_separator: Composed
    mentions: frozenset[int]

    def tell(self, telling: Telling, scope: Scope) -> str:
        pieces = self.each.pieces(telling, scope)
        if not pieces:
            return self.empty.tell(telling, scope)
        if len(pieces) == 1:
            return pieces[0]
        separator = self.separator.tell(telling, scope) if len(pieces) > 2 else ""
        return separator.join(pieces[:-1]) + self.last_separator.tell(telling, scope) + pieces[-1]

    def reads(self, telling: Telling, scope: PartialScope) -> int:
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


# --- Composing -----------------------------------------------------------------------------------

_Variables: TypeAlias = tuple[Placeholder, ...]


class Composer:
    """Composes templates, and every symbol once for each set of variables it is used with."""

    def __init__(self, grammar: Grammar, facts: Facts, domain: Domain) -> None:
        self._grammar = grammar
        self._facts = facts
        self._arities = domain.arities
        self._composed: dict[tuple[str, _Variables], Composed] = {}
        self._open: list[tuple[str, _Variables]] = []
        self._parts = 0

    def compose(self, template: Template, variables: _Variables) -> Composed:
        """Compose a template for a scope with these variables."""
        self._parts += len(template)
        if self._parts > MAX_PARTS:
            raise GameFileError(f"the grammar expands to more than {MAX_PARTS} parts; shorten it")
        parts = tuple(self._part(part, variables) for part in template)
        return parts[0] if len(parts) == 1 else _Sequence(parts, _union(parts))

    def _part(self, part: Part, variables: _Variables) -> Composed:
        if isinstance(part, Words):
            return _Words(part.text)
        if isinstance(part, Symbol):
            return self._symbol(part.name, variables)
        if isinstance(part, Each):
            return self._each(part, variables)
        return self._listing(part, variables)

    def _listing(self, part: Listing, variables: _Variables) -> Composed:
        empty, separator, last_separator = (
            self._symbol(name, variables) if name in self._grammar.symbols else _Missing(name)
            for name in ("list_empty", "list_separator", "list_last_separator")
        )
        each = self._each(part.each, variables)
        mentions = _union((each, empty, separator, last_separator))
        return _Listing(each, empty, separator, last_separator, mentions)

    def _each(self, each: Each, variables: _Variables) -> _Each:
        query, inner = None, variables
        if each.query is not None:
            query, inner = self._query(each.query, variables)
        part = (
            self._print(each.part, inner)
            if isinstance(each.part, Print)
            else self._symbol(each.part.name, inner)
        )
        return _Each(part, query, _union((part, query) if query else (part,)))

    def _print(self, part: Print, variables: _Variables) -> Composed:
        names = [placeholder.name for placeholder in variables]
        used: set[int] = set()

        def slot(name: str) -> int:
            if name not in names:
                known = ", ".join(dict.fromkeys(names)) or "none"
                raise GameFileError(
                    f"the expression {{{part.expression[:80]}}} uses a variable {name!r} where the "
                    f"variables are: {known}; bind it by a query"
                )
            place = len(names) - 1 - names[::-1].index(name)
            used.add(place)
            return place

        return _Print(compile_expression(part.expression, slot), frozenset(used))

    def _symbol(self, name: str, variables: _Variables) -> Composed:
        key = (name, variables)
        if key in self._open:
            names = " -> ".join(dict.fromkeys(symbol for symbol, _ in self._open))
            raise GameFileError(f"the grammar is cyclic: {names} -> {name}")
        if len(self._open) >= MAX_DEPTH:
            raise GameFileError(f"the symbols of the grammar nest more than {MAX_DEPTH} deep")
        if key not in self._composed:
            if name not in self._grammar.symbols:
                raise GameFileError(f"unknown symbol #{name[:80]}# in the grammar; define it")
            self._open.append(key)
            self._composed[key] = self._choice(name, variables)
            self._open.pop()
        return self._composed[key]

    def _choice(self, name: str, variables: _Variables) -> Composed:
        alternatives: list[tuple[_Query | None, Composed]] = []
        for alternative in self._grammar.symbols[name]:
            condition = None
            if alternative.condition is not None:
                condition, _ = self._query(alternative.condition, variables)
            alternatives.append((condition, self.compose(alternative.template, variables)))
        if alternatives[0][0] is None:
            return alternatives[0][1]
        conditions = [condition for condition, _ in alternatives if condition is not None]
        mentions = _union(conditions) | _union([part for _, part in alternatives])
        return _Choice(name, tuple(alternatives), mentions)

    def _query(self, query: Query, variables: _Variables) -> tuple[_Query, _Variables]:
        matches: list[_Match] = []
        for question in query:
            self._check(question)
            known = len(variables)
            variables += tuple(dict.fromkeys(a for a in question.args if a not in variables))
            slots = tuple(variables.index(arg) for arg in question.args)
            positions = tuple(place for place, slot in enumerate(slots) if slot < known)
            key = tuple(slots[place] for place in positions)
            lookup = self._facts.lookup(question, positions)
            mentions = frozenset(key) | self._rivals(question, slots, variables[:known])
            matches.append(_Match(self._facts, question, slots, known, key, lookup, mentions))
        return _Query(tuple(matches), len(variables), _union(matches)), variables

    def _rivals(
        self, question: Question, slots: tuple[int, ...], known: _Variables
    ) -> frozenset[int]:
        """Return the known variables whose entity one of the others could otherwise stand for."""
        types: set[str] = set()
        for place, slot in enumerate(slots):
            if slot >= len(known):
                types |= self._facts.types(question, place)
        return frozenset(slot for slot, variable in enumerate(known) if variable.type in types)

    def _check(self, question: Question) -> None:
        for arg in question.args:
            if not self._facts.knows_type(arg.type):
                raise GameFileError(
                    f"the grammar asks for {arg.name}:{arg.type}, which is no type of the domain"
                )
        base = _denied(question, self._arities) or question.predicate
        if self._arities.get(base) != len(question.args):
            raise GameFileError(
                f"the grammar asks for {question.predicate!r} with {len(question.args)} arguments, "
                "which is no predicate of the domain; predicates are written in lower case here"
            )


class _Mentioning(Protocol):
    @property
    def mentions(self) -> frozenset[int]: ...


def _union(parts: Iterable[_Mentioning]) -> frozenset[int]:
    return _NOTHING.union(*(part.mentions for part in parts))


def denied_predicates(grammar: Grammar, domain: Domain) -> set[str]:
    """Return the predicates for which the grammar asks whether they were told to be deleted."""
    asked = (_denied(question, domain.arities) for question in grammar.questions())
    return {predicate for predicate in asked if predicate is not None}


def _denied(question: Question, declared: Iterable[str]) -> str | None:
    predicate = question.predicate
    if predicate.startswith(_DENIED) and predicate not in declared:
        return predicate[len(_DENIED) :]
    return None
