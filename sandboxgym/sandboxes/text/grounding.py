"""Grounding: from schemas with variables to facts as bits and actions as masks, once per game.

Every fact that could ever become true gets one bit, so a state of the game is one Python integer,
a condition is a pair of masks and an action a few bitwise operations. What could ever become true
is found by delete relaxation: starting from the first facts, apply whatever action has its positive
preconditions met, never delete, until nothing new appears. Predicates that no effect mentions are
static; they are settled here and need no bit.

Next to what is true there is what the player is told, and the two can part; see `FactTable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.text.cases import Case, Splitter
from sandboxgym.sandboxes.text.joins import Budget, Database, Pattern, Row, Rule
from sandboxgym.sandboxes.text.pddl import (
    Action,
    And,
    Condition,
    Domain,
    Fact,
    ForAll,
    Literal,
    Or,
    Problem,
    Typed,
)

MAX_MASK_BITS = 200_000_000


@dataclass(frozen=True, slots=True)
class Clause:
    """A conjunction of literals: all bits of `needs` are set, and none of `forbids`."""

    needs: int = 0
    forbids: int = 0

    def holds(self, state: int) -> bool:
        """Whether the state satisfies the clause."""
        return state & self.needs == self.needs and not state & self.forbids


TRUE = Clause()


@dataclass(frozen=True, slots=True)
class Conditional:
    """What an operator changes only if a condition held before."""

    condition: Clause
    adds: int
    deletes: int


@dataclass(frozen=True, slots=True)
class Operator:
    """One way in which an action can be done, and what it does.

    Where the precondition has an 'or', several operators share one action and its arguments.
    """

    index: int
    action: Action
    args: tuple[str, ...]
    condition: Clause
    adds: int
    deletes: int
    conditionals: tuple[Conditional, ...]

    def apply(self, state: int) -> int:
        """Return the state afterwards; a fact both deleted and added is true."""
        adds, deletes = self.adds, self.deletes
        for conditional in self.conditionals:
            if conditional.condition.holds(state):
                adds |= conditional.adds
                deletes |= conditional.deletes
        return state & ~deletes | adds


@dataclass(frozen=True, slots=True)
class FactTable:
    """Which bit of a state stands for what.

    `facts` are the facts that can change, with the bit that says whether they are true. The other
    bits record where the story told differs. The stock engine tells its stories from a list of its
    own: an action enters all its effects there, even a conditional one whose condition did not
    hold, and that a fact was deleted is an entry too (``not_opened(...)``), which does not exist
    as long as nothing was deleted. Grammars ask for such entries, so a state has to remember them.
    """

    facts: dict[Fact, int]
    hearsay: dict[Fact, int]
    """For facts with conditional effects: the bit that says whether they are told to be true."""
    denials: dict[Fact, int]
    """For predicates whose ``not_`` the grammar asks for: the bit that says whether it is told."""

    @property
    def width(self) -> int:
        """The number of bits of a state."""
        return len(self.facts) + len(self.hearsay) + len(self.denials)

    @property
    def truth(self) -> int:
        """All bits that say what is true."""
        return (1 << len(self.facts)) - 1


@dataclass(frozen=True, slots=True)
class World:
    """A grounded game."""

    table: FactTable
    static: frozenset[Fact]
    init: int
    operators: tuple[Operator, ...]
    goal: tuple[tuple[Clause, ...], ...]
    """Groups of clauses; of every group, one must hold."""

    def won(self, state: int) -> bool:
        """Whether the goal holds."""
        return all(any(clause.holds(state) for clause in group) for group in self.goal)

    def true_at_start(self) -> int:
        """Return the facts that hold first, without what the story says of them."""
        return self.init & self.table.truth

    def goal_reads(self) -> int:
        """Return the bits that the goal depends on."""
        bits = 0
        for group in self.goal:
            for clause in group:
                bits |= clause.needs | clause.forbids
        return bits


def ground(domain: Domain, problem: Problem, denied: Iterable[str] = ()) -> World:
    """Ground a problem of a domain.

    Args:
        domain: The domain.
        problem: The problem.
        denied: The predicates whose deletion the grammar asks for.
    """
    return _Grounder(domain, problem, frozenset(denied)).world()


@dataclass(frozen=True, slots=True)
class _Condition:
    """A case of a condition, in terms of the values of a rule."""

    rule: Rule
    positive: tuple[Pattern, ...]
    negative: tuple[Pattern, ...]
    universal: tuple[ForAll, ...]

    @classmethod
    def of(cls, rule: Rule, case: Case) -> _Condition:
        positive, negative = rule.patterns(case.positive), rule.patterns(case.negative)
        return cls(rule, positive, negative, case.universal)


@dataclass(frozen=True, slots=True)
class _FurtherEffect:
    """What an action changes under a further condition; the rule extends the action's rule."""

    condition: _Condition
    effect: Pattern


@dataclass(frozen=True, slots=True)
class _ActionCase:
    """One case of an action's precondition, with what the action changes then."""

    action: Action
    precondition: _Condition
    effects: tuple[Pattern, ...]
    further: tuple[_FurtherEffect, ...]

    @property
    def rule(self) -> Rule:
        return self.precondition.rule


@dataclass(frozen=True, slots=True)
class _Change:
    """A fact that an operator makes true or false under a condition."""

    condition: Clause
    fact: Fact
    positive: bool


class _Grounder:
    def __init__(self, domain: Domain, problem: Problem, denied: frozenset[str]) -> None:
        self._domain = domain
        self._problem = problem
        self._denied = denied
        self._budget = Budget()
        self._objects = _objects_by_type(domain, problem)
        self._database = Database(self._objects, self._budget)
        self._splitter = Splitter()
        fluent = {effect.literal.predicate for a in domain.actions for effect in a.effects}
        equal = {("=", name, name) for name in problem.objects}
        self._static = equal | {fact for fact in problem.init if fact[0] not in fluent}
        self._changing = [fact for fact in problem.init if fact[0] in fluent]
        self._facts: dict[Fact, int] = {}
        self._shared: dict[int, int] = {}

    def world(self) -> World:
        for fact in sorted(self._static):
            self._database.relation(fact[0]).add(fact[1:])
        cases = [case for action in self._domain.actions for case in self._action_cases(action)]
        rules = [case.rule for case in cases]
        rules += [further.condition.rule for case in cases for further in case.further]
        reached = self._database.saturate(rules, self._changing)
        self._facts = {fact: bit for bit, fact in enumerate(sorted(reached))}
        table = self._table(cases)
        init = 0
        for fact in self._changing:
            init |= 1 << self._facts[fact]
            if fact in table.hearsay:
                init |= 1 << table.hearsay[fact]
        operators = self._operators(cases, table)
        return World(table, frozenset(self._static), init, operators, self._goal())

    # --- Rules: what can be reached ---

    def _action_cases(self, action: Action) -> list[_ActionCase]:
        simple: list[Literal] = []
        conditional: list[tuple[Case, Literal]] = []
        for effect in action.effects:
            for case, literal in self._splitter.effect(effect):
                if case == Case():
                    simple.append(literal)
                else:
                    conditional.append((case, literal))
        return [
            self._action_case(action, case, simple, conditional)
            for case in self._splitter.condition(action.precondition)
        ]

    def _action_case(
        self,
        action: Action,
        case: Case,
        simple: list[Literal],
        conditional: list[tuple[Case, Literal]],
    ) -> _ActionCase:
        parameters = action.parameters + case.parameters
        rule = Rule(parameters, case.positive, [literal for literal in simple if literal.positive])
        further: list[_FurtherEffect] = []
        for extra, literal in conditional:
            heads = [literal] if literal.positive else []
            body = case.positive + extra.positive
            extended = Rule(parameters + extra.parameters, body, heads)
            (effect,) = extended.patterns([literal])
            further.append(_FurtherEffect(_Condition.of(extended, extra), effect))
        effects = rule.patterns(simple)
        return _ActionCase(action, _Condition.of(rule, case), effects, tuple(further))

    def _table(self, cases: Iterable[_ActionCase]) -> FactTable:
        doubtful = {further.effect.predicate for case in cases for further in case.further}
        bit = len(self._facts)
        hearsay: dict[Fact, int] = {}
        denials: dict[Fact, int] = {}
        for table, predicates in ((hearsay, doubtful), (denials, self._denied)):
            for fact in self._facts:
                if fact[0] in predicates:
                    table[fact] = bit
                    bit += 1
        return FactTable(self._facts, hearsay, denials)

    # --- Operators ---

    def _operators(self, cases: Iterable[_ActionCase], table: FactTable) -> tuple[Operator, ...]:
        count = sum(len(case.rule.bindings) for case in cases)
        if count * table.width > MAX_MASK_BITS:
            raise GameFileError(
                f"the game has {count} ground actions over {table.width} facts, which is too much; "
                "use fewer objects"
            )
        operators: list[Operator] = []
        for case in cases:
            length = len(case.rule.parameters)
            extended = [_by_prefix(each.condition.rule.bindings, length) for each in case.further]
            for binding in sorted(case.rule.bindings):
                for clause in self._clauses(case.precondition, binding):
                    longer = [by_prefix.get(binding, []) for by_prefix in extended]
                    changes = self._changes(case, clause, binding, longer)
                    if changes:
                        operators.append(
                            self._operator(len(operators), case, clause, binding, changes, table)
                        )
        return tuple(operators)

    def _changes(
        self, case: _ActionCase, clause: Clause, binding: Row, longer: list[list[Row]]
    ) -> list[_Change]:
        """Return what an action changes, given that its precondition `clause` holds.

        Args:
            case: The case of the action.
            clause: The precondition.
            binding: The objects for the parameters.
            longer: For every further effect, the objects for its parameters as well.
        """
        values = case.rule.values(binding)
        changes = [_Change(TRUE, each.fact(values), each.positive) for each in case.effects]
        for further, bindings in zip(case.further, longer, strict=True):
            for each in bindings:
                fact = further.effect.fact(further.condition.rule.values(each))
                for condition in self._clauses(further.condition, each):
                    rest = _given(condition, clause)
                    if rest is not None:
                        changes.append(_Change(rest, fact, further.effect.positive))
        return self._effective(changes, clause)

    def _effective(self, changes: list[_Change], clause: Clause) -> list[_Change]:
        """Return the changes without those that the precondition shows to be idle.

        An action without any effective change cannot be done at all. That is why an agent cannot
        go to a second receptacle at the place where it stands.
        """
        added = {(change.fact, change.condition) for change in changes if change.positive}
        result = []
        for change in changes:
            bit = self._facts.get(change.fact)
            if bit is None:
                continue  # deletes what can never be true
            if change.positive:
                idle = clause.needs >> bit & 1
            else:
                idle = (
                    clause.forbids >> bit & 1
                    or (change.fact, TRUE) in added
                    or (change.fact, change.condition) in added
                )
            if not idle:
                result.append(change)
        return result

    def _operator(
        self,
        index: int,
        case: _ActionCase,
        clause: Clause,
        binding: Row,
        changes: list[_Change],
        table: FactTable,
    ) -> Operator:
        adds = deletes = 0
        conditionals: list[Conditional] = []
        for change in changes:
            mask = 1 << self._facts[change.fact]
            add, delete = (mask, 0) if change.positive else (0, mask)
            if change.condition == TRUE:
                adds |= add
                deletes |= delete
            else:
                conditionals.append(Conditional(change.condition, add, delete))
        # The story has a fact deleted if any effect deletes it, whatever the conditions.
        denied = {change.fact for change in changes if not change.positive}
        asserted = {change.fact for change in changes if change.positive} - denied
        for fact in asserted:
            adds |= _mask(table.hearsay, fact)
            deletes |= _mask(table.denials, fact)
        for fact in denied:
            deletes |= _mask(table.hearsay, fact)
            adds |= _mask(table.denials, fact)
        share = self._shared.setdefault
        return Operator(
            index,
            case.action,
            binding[: len(case.action.parameters)],
            clause,
            share(adds, adds),
            share(deletes, deletes),
            tuple(conditionals),
        )

    # --- Conditions ---

    def _clauses(self, condition: _Condition, binding: Row) -> list[Clause]:
        """Return the disjuncts of a condition for a binding that its positive literals allow."""
        rule, bits = condition.rule, self._facts
        values = rule.values(binding)
        needs = forbids = 0
        for pattern in condition.positive:
            needs |= _mask(bits, pattern.fact(values))
        for pattern in condition.negative:
            fact = pattern.fact(values)
            if fact in self._static:
                return []
            forbids |= _mask(bits, fact)
        if needs & forbids:
            return []
        share = self._shared.setdefault
        clauses = [Clause(share(needs, needs), share(forbids, forbids))]
        for universal in condition.universal:
            names = {typed.name: name for typed, name in zip(rule.parameters, binding, strict=True)}
            clauses = self._both(clauses, self._expand(universal, names))
        return clauses

    def _expand(self, condition: Condition, names: dict[str, str]) -> list[Clause]:
        """Return the disjuncts of any condition, by trying all objects for its variables."""
        if isinstance(condition, Literal):
            fact = (condition.predicate, *[names.get(arg, arg) for arg in condition.args])
            mask = _mask(self._facts, fact)
            if mask:
                return [Clause(mask, 0) if condition.positive else Clause(0, mask)]
            return [TRUE] if (fact in self._static) == condition.positive else []
        if isinstance(condition, (And, Or)):
            parts = [self._expand(part, names) for part in condition.parts]
        else:
            parts = [
                self._expand(condition.part, inner)
                for inner in self._choices(condition.parameters, names)
            ]
        if isinstance(condition, (And, ForAll)):
            clauses = [TRUE]
            for part in parts:
                clauses = self._both(clauses, part)
            return clauses
        return self._distinct(clause for part in parts for clause in part)

    def _choices(
        self, parameters: tuple[Typed, ...], names: dict[str, str]
    ) -> Iterable[dict[str, str]]:
        for chosen in product(*(self._objects.get(typed.type, ()) for typed in parameters)):
            self._budget.spend()
            yield names | {typed.name: name for typed, name in zip(parameters, chosen, strict=True)}

    def _both(self, left: list[Clause], right: list[Clause]) -> list[Clause]:
        """Return the disjuncts of a conjunction."""
        self._budget.spend(len(left) * len(right))
        merged = (
            Clause(one.needs | other.needs, one.forbids | other.forbids)
            for one in left
            for other in right
        )
        return self._distinct(clause for clause in merged if not clause.needs & clause.forbids)

    def _distinct(self, clauses: Iterable[Clause]) -> list[Clause]:
        distinct = list(dict.fromkeys(clauses))
        self._budget.spend(len(distinct))
        return [TRUE] if TRUE in distinct else distinct

    def _goal(self) -> tuple[tuple[Clause, ...], ...]:
        groups: list[tuple[Clause, ...]] = []
        for part in self._conjuncts(self._problem.goal):
            clauses: list[Clause] = []
            for case in self._splitter.condition(part):
                rule = Rule(case.parameters, case.positive)
                condition = _Condition.of(rule, case)
                for binding in self._database.solve(rule):
                    clauses += self._clauses(condition, binding)
            group = self._distinct(clauses)
            if group != [TRUE]:
                groups.append(tuple(group))
        return tuple(groups)

    def _conjuncts(self, condition: Condition) -> Iterable[Condition]:
        """Yield the parts of a conjunction, so that they need not be multiplied out."""
        if isinstance(condition, And):
            for part in condition.parts:
                yield from self._conjuncts(part)
        else:
            yield condition


def _objects_by_type(domain: Domain, problem: Problem) -> dict[str, tuple[str, ...]]:
    result: dict[str, list[str]] = {name: [] for name in domain.supertypes}
    for name, type_name in sorted(problem.objects.items()):
        for each in (type_name, *domain.supertypes[type_name]):
            result[each].append(name)
    return {name: tuple(members) for name, members in result.items()}


def _by_prefix(bindings: Iterable[Row], length: int) -> dict[Row, list[Row]]:
    result: dict[Row, list[Row]] = {}
    for binding in sorted(bindings):
        result.setdefault(binding[:length], []).append(binding)
    return result


def _given(condition: Clause, clause: Clause) -> Clause | None:
    """Return what is left to check of a condition where `clause` holds; None if it cannot hold."""
    if condition.needs & clause.forbids or condition.forbids & clause.needs:
        return None
    return Clause(condition.needs & ~clause.needs, condition.forbids & ~clause.forbids)


def _mask(bits: Mapping[Fact, int], fact: Fact) -> int:
    return 1 << bits[fact] if fact in bits else 0
