"""Joins: for which objects a conjunction of facts holds, and which facts can ever be reached."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.text.pddl import Fact, Literal, Typed

MAX_WORK = 500_000

Row: TypeAlias = tuple[str, ...]
Slots: TypeAlias = tuple[int, ...]
Index: TypeAlias = dict[Row, list[Row]]


class Budget:
    """How much work the grounding of one game may still do; too much raises an error."""

    def __init__(self, work: int = MAX_WORK) -> None:
        self._left = work

    def spend(self, work: int = 1) -> None:
        """Take some work off the budget."""
        self._left -= work
        if self._left < 0:
            raise GameFileError(
                "the actions or the goal have too many combinations of objects to be grounded; "
                "use fewer objects, or conditions that tie the parameters together"
            )


class Relation:
    """The known facts of one predicate, indexed by whichever argument positions are asked for."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._indexes: dict[Slots, Index] = {}

    def add(self, row: Row) -> None:
        """Add a fact."""
        self.rows.append(row)
        for positions, index in self._indexes.items():
            index.setdefault(tuple([row[p] for p in positions]), []).append(row)

    def index(self, positions: Slots) -> Index:
        """Return a mapping from values at `positions` to rows; it keeps up with `add`."""
        if positions not in self._indexes:
            index = self._indexes[positions] = {}
            for row in self.rows:
                index.setdefault(tuple([row[p] for p in positions]), []).append(row)
        return self._indexes[positions]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A literal of a rule whose arguments are found in the rule's slots."""

    predicate: str
    slots: Slots
    positive: bool

    def fact(self, values: Row) -> Fact:
        """Return the fact for given values."""
        return (self.predicate, *[values[slot] for slot in self.slots])


class Rule:
    """If the body holds for some objects of the parameters' types, so can the heads.

    A *binding* is a row of objects, one per parameter. Its *values* are the binding and, behind it,
    the constants that the literals mention; a *slot* is a place in the values.
    """

    def __init__(
        self, parameters: Sequence[Typed], body: Sequence[Literal], heads: Sequence[Literal] = ()
    ) -> None:
        self.parameters = tuple(parameters)
        self.bindings: dict[Row, None] = {}
        """All bindings for which the body can ever hold, once `saturate` has found them."""
        self._slots = {parameter.name: slot for slot, parameter in enumerate(parameters)}
        self._constants: list[str] = []
        self.body = self.patterns(body)
        self.heads = self.patterns(heads)

    def patterns(self, literals: Iterable[Literal]) -> tuple[Pattern, ...]:
        """Return literals over the rule's parameters and any constants as patterns."""
        return tuple([self._pattern(literal) for literal in literals])

    def _pattern(self, literal: Literal) -> Pattern:
        for arg in literal.args:
            if arg not in self._slots:
                self._slots[arg] = len(self._slots)
                self._constants.append(arg)
        slots = tuple([self._slots[arg] for arg in literal.args])
        return Pattern(literal.predicate, slots, literal.positive)

    def values(self, binding: Row) -> Row:
        """Return the values that go with a binding."""
        return (*binding, *self._constants)


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a join: find rows by the slots that have a value, and fill others from them."""

    index: Index
    known: tuple[tuple[int, int], ...]
    """Position in the row, slot whose value must be there. They are the key of the index."""
    fills: tuple[tuple[int, int, frozenset[str]], ...]
    """Position in the row, slot to fill from it, the objects that the slot may hold."""
    repeats: tuple[tuple[int, int], ...]
    """Position in the row, slot that this very step has filled with what must be there."""

    def extend(self, values: list[str]) -> list[list[str]]:
        """Return the values with further slots filled, once for each row that fits."""
        rows = self.index.get(tuple([values[slot] for _, slot in self.known]))
        if rows is None:
            return []
        if not self.fills:
            return [values]
        return [longer for row in rows if (longer := self.filled(values, row)) is not None]

    def filled(self, values: list[str], row: Row) -> list[str] | None:
        """Return the values with slots filled from a row; None if the row does not fit."""
        values = values.copy()
        for position, slot, allowed in self.fills:
            if row[position] not in allowed:
                return None
            values[slot] = row[position]
        for position, slot in self.repeats:
            if values[slot] != row[position]:
                return None
        return values


@dataclass(frozen=True, slots=True)
class _Trigger:
    """What to try when a fact becomes known that could match one pattern of a rule's body."""

    rule: Rule
    first: _Step
    others: tuple[_Step, ...]


class Database:
    """Facts by predicate, and the objects of each type."""

    def __init__(self, objects: Mapping[str, Sequence[str]], budget: Budget) -> None:
        self._objects = {name: frozenset(members) for name, members in objects.items()}
        self._unary: dict[str, list[Row]] = {
            name: [(member,) for member in members] for name, members in objects.items()
        }
        self._relations: dict[str, Relation] = {}
        self._budget = budget

    def relation(self, predicate: str) -> Relation:
        """Return the relation of a predicate."""
        return self._relations.setdefault(predicate, Relation())

    def solve(self, rule: Rule) -> list[Row]:
        """Return the bindings for which the rule's body holds."""
        steps = self._steps(rule, rule.body, set(), frozenset())
        return self._join(rule, steps, self._unbound(rule))

    def saturate(self, rules: Sequence[Rule], facts: Iterable[Fact]) -> set[Fact]:
        """Add facts and all that follow from them by the rules, find all bindings of the rules.

        Facts of any predicate that is neither here nor a head of a rule must be known before.

        Returns:
            `facts` and those that follow.
        """
        reached = set(facts)
        waiting = deque(sorted(reached))
        fluent = frozenset(fact[0] for fact in waiting)
        fluent |= {head.predicate for rule in rules for head in rule.heads}
        triggers = self._triggers(rules, fluent)

        def found(rule: Rule, bindings: list[Row]) -> None:
            for binding in bindings:
                if binding not in rule.bindings:
                    self._budget.spend(len(rule.heads))
                    rule.bindings[binding] = None
                    values = rule.values(binding)
                    for head in rule.heads:
                        fact = head.fact(values)
                        if fact not in reached:
                            reached.add(fact)
                            waiting.append(fact)

        for rule in rules:
            if not any(pattern.predicate in fluent for pattern in rule.body):
                found(rule, self.solve(rule))
        while waiting:
            predicate, *row = waiting.popleft()
            self.relation(predicate).add(tuple(row))
            for trigger in triggers[predicate]:
                found(trigger.rule, self._fire(trigger, tuple(row)))
        return reached

    def _triggers(self, rules: Iterable[Rule], fluent: frozenset[str]) -> dict[str, list[_Trigger]]:
        triggers: dict[str, list[_Trigger]] = {predicate: [] for predicate in fluent}
        for rule in rules:
            for place, pattern in enumerate(rule.body):
                if pattern.predicate in fluent:
                    bound: set[int] = set()
                    first = self._step(rule, pattern, bound)
                    others = (*rule.body[:place], *rule.body[place + 1 :])
                    steps = self._steps(rule, others, bound, fluent)
                    triggers[pattern.predicate].append(_Trigger(rule, first, steps))
        return triggers

    def _fire(self, trigger: _Trigger, row: Row) -> list[Row]:
        first = trigger.first
        unbound = self._unbound(trigger.rule)
        if any(row[position] != unbound[slot] for position, slot in first.known):
            return []
        values = first.filled(unbound, row)
        return self._join(trigger.rule, trigger.others, values) if values is not None else []

    def _unbound(self, rule: Rule) -> list[str]:
        return list(rule.values(("",) * len(rule.parameters)))

    def _join(self, rule: Rule, steps: tuple[_Step, ...], values: list[str]) -> list[Row]:
        partial = [values]
        for step in steps:
            grown: list[list[str]] = []
            for each in partial:
                longer = step.extend(each)
                self._budget.spend(1 + len(longer))
                grown += longer
            partial = grown
        size = len(rule.parameters)
        return [tuple(each[:size]) for each in partial]

    def _steps(
        self, rule: Rule, patterns: Sequence[Pattern], bound: set[int], fluent: frozenset[str]
    ) -> tuple[_Step, ...]:
        """Put patterns in an order that leaves few rows early; bind free parameters at the end."""

        def cost(pattern: Pattern) -> tuple[bool, bool, float]:
            slots = [slot for slot in pattern.slots if slot < len(rule.parameters)]
            free = sum(slot not in bound for slot in slots)
            return free > 0, pattern.predicate in fluent, free / max(1, len(slots))

        waiting = list(patterns)
        steps: list[_Step] = []
        while waiting:
            cheapest = min(waiting, key=cost)
            waiting.remove(cheapest)
            steps.append(self._step(rule, cheapest, bound))
        for slot, parameter in enumerate(rule.parameters):
            if slot not in bound:
                index: Index = {(): self._unary.get(parameter.type, [])}
                steps.append(_Step(index, (), ((0, slot, self._allowed(rule, slot)),), ()))
        return tuple(steps)

    def _step(self, rule: Rule, pattern: Pattern, bound: set[int]) -> _Step:
        """Return the step that matches a pattern, and add the slots that it fills to `bound`."""
        known: list[tuple[int, int]] = []
        fills: list[tuple[int, int, frozenset[str]]] = []
        repeats: list[tuple[int, int]] = []
        filled: set[int] = set()
        for position, slot in enumerate(pattern.slots):
            if slot in filled:
                repeats.append((position, slot))
            elif slot in bound or slot >= len(rule.parameters):
                known.append((position, slot))
            else:
                fills.append((position, slot, self._allowed(rule, slot)))
                filled.add(slot)
        bound |= filled
        index = self.relation(pattern.predicate).index(tuple(position for position, _ in known))
        return _Step(index, tuple(known), tuple(fills), tuple(repeats))

    def _allowed(self, rule: Rule, slot: int) -> frozenset[str]:
        return self._objects.get(rule.parameters[slot].type, frozenset())
