"""Composing: from the templates of a grammar to parts that can be told in any state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.text import story, twl2
from sandboxgym.sandboxes.text.expressions import compile_expression
from sandboxgym.sandboxes.text.facts import Facts
from sandboxgym.sandboxes.text.pddl import Domain
from sandboxgym.sandboxes.text.story import NOTHING, Composed
from sandboxgym.sandboxes.text.twl2 import DENIED, Grammar, Placeholder, Question, Template

MAX_DEPTH = 50
MAX_PARTS = 20_000

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
        return parts[0] if len(parts) == 1 else story.Sequence(parts, _union(parts))

    def _part(self, part: twl2.Part, variables: _Variables) -> Composed:
        if isinstance(part, twl2.Words):
            return story.Words(part.text)
        if isinstance(part, twl2.Symbol):
            return self._symbol(part.name, variables)
        if isinstance(part, twl2.Each):
            return self._each(part, variables)
        return self._listing(part, variables)

    def _listing(self, part: twl2.Listing, variables: _Variables) -> Composed:
        empty, separator, last_separator = (
            self._symbol(name, variables) if name in self._grammar.symbols else story.Missing(name)
            for name in ("list_empty", "list_separator", "list_last_separator")
        )
        each = self._each(part.each, variables)
        mentions = _union((each, empty, separator, last_separator))
        return story.Listing(each, empty, separator, last_separator, mentions)

    def _each(self, each: twl2.Each, variables: _Variables) -> story.Each:
        query, inner = None, variables
        if each.query is not None:
            query, inner = self._query(each.query, variables)
        part = (
            self._print(each.part, inner)
            if isinstance(each.part, twl2.Print)
            else self._symbol(each.part.name, inner)
        )
        return story.Each(part, query, _union((part, query) if query else (part,)))

    def _print(self, part: twl2.Print, variables: _Variables) -> Composed:
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

        return story.Print(compile_expression(part.expression, slot), frozenset(used))

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
        alternatives: list[tuple[story.Query | None, Composed]] = []
        for alternative in self._grammar.symbols[name]:
            condition = None
            if alternative.condition is not None:
                condition, _ = self._query(alternative.condition, variables)
            alternatives.append((condition, self.compose(alternative.template, variables)))
        if alternatives[0][0] is None:
            return alternatives[0][1]
        conditions = [condition for condition, _ in alternatives if condition is not None]
        mentions = _union(conditions) | _union([part for _, part in alternatives])
        return story.Choice(name, tuple(alternatives), mentions)

    def _query(self, query: twl2.Query, variables: _Variables) -> tuple[story.Query, _Variables]:
        matches: list[story.Match] = []
        for question in query:
            self._check(question)
            known = len(variables)
            variables += tuple(dict.fromkeys(a for a in question.args if a not in variables))
            slots = tuple(variables.index(arg) for arg in question.args)
            positions = tuple(place for place, slot in enumerate(slots) if slot < known)
            key = tuple(slots[place] for place in positions)
            lookup = self._facts.lookup(question, positions)
            mentions = frozenset(key) | self._rivals(question, slots, variables[:known])
            matches.append(story.Match(self._facts, question, slots, known, key, lookup, mentions))
        return story.Query(tuple(matches), len(variables), _union(matches)), variables

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
    return NOTHING.union(*(part.mentions for part in parts))


def denied_predicates(grammar: Grammar, domain: Domain) -> set[str]:
    """Return the predicates for which the grammar asks whether they were told to be deleted."""
    asked = (_denied(question, domain.arities) for question in grammar.questions())
    return {predicate for predicate in asked if predicate is not None}


def _denied(question: Question, declared: Iterable[str]) -> str | None:
    predicate = question.predicate
    if predicate.startswith(DENIED) and predicate not in declared:
        return predicate[len(DENIED) :]
    return None
