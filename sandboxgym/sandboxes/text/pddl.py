"""Reading PDDL: the domain and the problem that a game file embeds.

What is understood is the ADL part of PDDL that text games use: types, constants, predicates,
actions with `and`, `or`, `not`, `imply`, `exists`, `forall` and `when`. Action costs are read
and dropped, since they change nothing that a player can see.

Two customs of the Fast Downward translator, which the stock games were written for, are kept:
all names are lower-cased, and a name is everything between blanks and parentheses. So the comma
in ``(?l - location, ?r - receptacle)`` belongs to the type: nothing is of type ``location,`` and
the quantifier never finds an object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from sandboxgym.core.errors import GameFileError

MAX_NESTING = 64
MAX_TYPES = 500
MAX_EFFECTS = 200
MAX_OBJECTS = 5_000
MAX_INIT_FACTS = 50_000

Fact = tuple[str, ...]
"""A ground atom: the predicate, then its arguments."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A variable, constant or object with its declared type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A predicate over variables and constants, or its negation."""

    predicate: str
    args: tuple[str, ...]
    positive: bool = True


@dataclass(frozen=True, slots=True)
class And:
    """True if all parts are; with no parts it is simply true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """True if any part is."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """True if the part is, for some choice of objects for the parameters."""

    parameters: tuple[Typed, ...]
    part: Condition


@dataclass(frozen=True, slots=True)
class ForAll:
    """True if the part is, for every choice of objects for the parameters."""

    parameters: tuple[Typed, ...]
    part: Condition


# Conditions are in negation normal form: only a literal can be negated.
Condition: TypeAlias = "Literal | And | Or | Exists | ForAll"

ALWAYS = And(())


@dataclass(frozen=True, slots=True)
class Effect:
    """One literal made true, for all objects of the parameters, where the condition holds."""

    parameters: tuple[Typed, ...]
    condition: Condition
    literal: Literal


@dataclass(frozen=True, slots=True)
class Action:
    """An action schema."""

    name: str
    parameters: tuple[Typed, ...]
    precondition: Condition
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """What holds for all games of a kind."""

    supertypes: dict[str, frozenset[str]]
    """Each type with all its ancestors."""
    constants: tuple[Typed, ...]
    arities: dict[str, int]
    """Each predicate with the number of its arguments."""
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One game: its objects (the constants among them), what is true first, and the goal."""

    objects: dict[str, str]
    """Each object with its type."""
    init: tuple[Fact, ...]
    goal: Condition


# --- S-expressions -------------------------------------------------------------------------------

Expression: TypeAlias = "str | list[Expression]"

_COMMENT = re.compile(r";[^\n]*")
_TOKEN = re.compile(r"[()]|\?[^\s()?]*|[^\s()?]+")


def read_expression(text: str, what: str) -> list[Expression]:
    """Read the one parenthesised expression that `text` consists of.

    The nesting is limited here, once, so that the functions below may recurse.
    """
    text = _COMMENT.sub("", text).lower()
    if not text.isascii():
        raise GameFileError(f"the {what} has a non-ASCII character outside a comment; remove it")
    open_lists: list[list[Expression]] = []
    finished: list[Expression] | None = None
    for match in _TOKEN.finditer(text):
        token = match.group()
        if finished is not None:
            raise GameFileError(f"the {what} goes on after its last ')': unexpected {token[:40]!r}")
        if token == "(":
            open_lists.append([])
            if len(open_lists) > MAX_NESTING:
                raise GameFileError(f"the {what} is nested more than {MAX_NESTING} levels deep")
        elif not open_lists:
            raise GameFileError(f"the {what} must start with '(', not with {token[:40]!r}")
        elif token == ")":
            closed = open_lists.pop()
            if open_lists:
                open_lists[-1].append(closed)
            else:
                finished = closed
        else:
            open_lists[-1].append(token)
    if finished is None:
        raise GameFileError(f"the {what} ends before its last ')'; is the file truncated?")
    return finished


def _show(expression: Expression) -> str:
    """Return the start of an expression, for messages."""
    if isinstance(expression, str):
        return expression[:60]
    shown = " ".join("(...)" if isinstance(part, list) else part[:40] for part in expression[:6])
    return f"({shown}{' ...' if len(expression) > 6 else ''})"


def _as_list(expression: Expression, what: str) -> list[Expression]:
    if isinstance(expression, str):
        raise GameFileError(f"expected {what} in parentheses, found {_show(expression)!r}")
    return expression


def _as_names(expressions: list[Expression], what: str) -> list[str]:
    names: list[str] = []
    for expression in expressions:
        if not isinstance(expression, str):
            raise GameFileError(f"expected plain names in {what}, found {_show(expression)}")
        names.append(expression)
    return names


def _sections(expression: list[Expression], what: str) -> Iterator[tuple[str, list[Expression]]]:
    """Yield keyword and rest of each section of ``(define (domain ...) (:types ...) ...)``."""
    if not expression or expression[0] != "define":
        raise GameFileError(f"the {what} must start with '(define', not with {_show(expression)}")
    for section in expression[1:]:
        head, *rest = _as_list(section, f"a section of the {what}") or [""]
        if not isinstance(head, str) or not head:
            raise GameFileError(f"a section of the {what} has no name: {_show(section)}")
        yield head, rest


def _typed_list(expressions: list[Expression], what: str) -> tuple[Typed, ...]:
    """Read ``a b - type c``; what has no type is an `object`."""
    result: list[Typed] = []
    waiting: list[str] = []
    names = iter(_as_names(expressions, what))
    for name in names:
        if name != "-":
            waiting.append(name)
            continue
        type_name = next(names, None)
        if type_name is None:
            raise GameFileError(f"a '-' without a type at the end of {what}")
        result.extend(Typed(waiting_name, type_name) for waiting_name in waiting)
        waiting = []
    result.extend(Typed(name, "object") for name in waiting)
    return tuple(result)


def _variables(expression: Expression, what: str) -> tuple[Typed, ...]:
    variables = _typed_list(_as_list(expression, f"the {what}"), f"the {what}")
    names = [variable.name for variable in variables]
    for name in names:
        if not name.startswith("?"):
            raise GameFileError(f"{name!r} in the {what} is no variable; it needs a '?'")
    if len(set(names)) < len(names):
        raise GameFileError(f"the {what} name a variable twice: {' '.join(names)}")
    return variables


# --- Conditions and effects ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads conditions and effects, given the predicates that exist; `where` is for messages."""

    arities: dict[str, int]
    where: str

    def condition(self, expression: Expression, variables: frozenset[str]) -> Condition:
        """Read a condition; an empty pair of parentheses is always true."""
        return self._condition(expression, variables, positive=True) if expression else ALWAYS

    def _condition(
        self, expression: Expression, variables: frozenset[str], *, positive: bool
    ) -> Condition:
        tag, *parts = _as_list(expression, f"a condition of {self.where}") or [""]
        if tag == "not":
            (part,) = self._exactly(1, expression)
            return self._condition(part, variables, positive=not positive)
        if tag in ("and", "or"):
            read = tuple(self._condition(part, variables, positive=positive) for part in parts)
            return And(read) if (tag == "and") == positive else Or(read)
        if tag == "imply":
            premise, conclusion = self._exactly(2, expression)
            both = (
                self._condition(premise, variables, positive=not positive),
                self._condition(conclusion, variables, positive=positive),
            )
            return Or(both) if positive else And(both)
        if tag in ("exists", "forall"):
            bound, part = self._exactly(2, expression)
            parameters = _variables(bound, f"variables of '{tag}' in {self.where}")
            inner = variables | {parameter.name for parameter in parameters}
            body = self._condition(part, inner, positive=positive)
            return (Exists if (tag == "exists") == positive else ForAll)(parameters, body)
        return self._literal(expression, variables, positive=positive)

    def effects(self, expression: Expression, variables: frozenset[str]) -> Iterator[Effect]:
        """Yield the single effects that an effect expression amounts to."""
        yield from self._effects(expression, variables, (), ())

    def _effects(
        self,
        expression: Expression,
        variables: frozenset[str],
        parameters: tuple[Typed, ...],
        conditions: tuple[Condition, ...],
    ) -> Iterator[Effect]:
        tag, *parts = _as_list(expression, f"an effect of {self.where}") or ["and"]
        if tag == "and":
            for part in parts:
                yield from self._effects(part, variables, parameters, conditions)
        elif tag == "forall":
            bound, part = self._exactly(2, expression)
            more = _variables(bound, f"variables of 'forall' in {self.where}")
            inner = variables | {parameter.name for parameter in more}
            yield from self._effects(part, inner, parameters + more, conditions)
        elif tag == "when":
            condition, part = self._exactly(2, expression)
            more_conditions = (*conditions, self.condition(condition, variables))
            yield from self._effects(part, variables, parameters, more_conditions)
        elif tag in ("increase", "assign"):
            return  # action costs
        else:
            positive = tag != "not"
            literal = expression if positive else self._exactly(1, expression)[0]
            yield Effect(
                parameters,
                And(conditions),
                self._literal(literal, variables, positive=positive, changes=True),
            )

    def _literal(
        self,
        expression: Expression,
        variables: frozenset[str],
        *,
        positive: bool,
        changes: bool = False,
    ) -> Literal:
        names = _as_names(_as_list(expression, f"a literal of {self.where}"), self.where)
        predicate, *args = names or [""]
        arity = 2 if predicate == "=" and not changes else self.arities.get(predicate)
        if arity is None:
            raise GameFileError(
                f"unknown predicate {predicate!r} in {self.where}; declare it in (:predicates ...)"
            )
        if len(args) != arity:
            raise GameFileError(
                f"{_show(expression)} in {self.where} has {len(args)} arguments, "
                f"but {predicate!r} is declared with {arity}"
            )
        for arg in args:
            if arg.startswith("?") and arg not in variables:
                raise GameFileError(f"unknown variable {arg!r} in {self.where}")
        return Literal(predicate, tuple(args), positive)

    def _exactly(self, count: int, expression: Expression) -> list[Expression]:
        parts = list(expression)[1:]
        if len(parts) != count:
            raise GameFileError(
                f"{_show(expression)} in {self.where} needs {count} parts, it has {len(parts)}"
            )
        return parts


# --- Domain and problem --------------------------------------------------------------------------


def parse_domain(text: str) -> Domain:
    """Read a PDDL domain."""
    types: tuple[Typed, ...] = ()
    constants: tuple[Typed, ...] = ()
    arities: dict[str, int] = {}
    action_sections: list[list[Expression]] = []
    for keyword, rest in _sections(read_expression(text, "domain"), "domain"):
        if keyword == ":types":
            types = _typed_list(rest, "(:types ...)")
        elif keyword == ":constants":
            constants = _typed_list(rest, "(:constants ...)")
        elif keyword == ":predicates":
            arities = dict(_predicate(entry) for entry in rest)
        elif keyword == ":action":
            action_sections.append(rest)
        elif keyword not in ("domain", ":requirements", ":functions"):
            raise GameFileError(f"the engine does not know {keyword!r} in a domain; remove it")
    actions = tuple(_action(section, arities) for section in action_sections)
    names = [action.name for action in actions]
    if len(set(names)) < len(names):
        raise GameFileError("the domain names an action twice; give each its own name")
    return Domain(_supertypes(types), constants, arities, actions)


def _supertypes(types: tuple[Typed, ...]) -> dict[str, frozenset[str]]:
    """Return every type with all its ancestors; `object` is the root unless the domain differs."""
    if len(types) > MAX_TYPES:
        raise GameFileError(f"the domain has {len(types)} types, more than {MAX_TYPES}")
    parents: dict[str, set[str]] = {"object": set()}
    for declared in types:
        parents.setdefault(declared.name, set()).add(declared.type)
    for name, direct in parents.items():
        for parent in direct - parents.keys():
            raise GameFileError(f"type {name!r} is under an undeclared type {parent!r}")
    result: dict[str, frozenset[str]] = {}
    for name in parents:
        ancestors: set[str] = set()
        waiting = list(parents[name])
        while waiting:
            parent = waiting.pop()
            if parent not in ancestors:
                ancestors.add(parent)
                waiting.extend(parents[parent])
        result[name] = frozenset(ancestors - {name})
    return result


def _predicate(expression: Expression) -> tuple[str, int]:
    name, *arguments = _as_list(expression, "a predicate") or [""]
    if not isinstance(name, str) or not name:
        raise GameFileError(f"a predicate has no name: {_show(expression)}")
    return name, len(_variables(arguments, f"arguments of predicate {name!r}"))


def _action(section: list[Expression], arities: dict[str, int]) -> Action:
    name, *rest = section or [""]
    if not isinstance(name, str) or not name or len(rest) % 2:
        raise GameFileError(f"malformed action {_show(section)}; expected a name and keyword pairs")
    keywords = _as_names(rest[::2], f"action {name!r}")
    fields: dict[str, Expression] = dict(zip(keywords, rest[1::2], strict=True))
    unknown = fields.keys() - {":parameters", ":precondition", ":effect"}
    if unknown:
        raise GameFileError(f"action {name!r} has an unknown part {min(unknown)!r}")
    parameters = _variables(fields.get(":parameters", []), f"parameters of action {name!r}")
    variables = frozenset(parameter.name for parameter in parameters)
    reader = _Reader(arities, f"action {name!r}")
    precondition = reader.condition(fields.get(":precondition", []), variables)
    effects = tuple(reader.effects(fields.get(":effect", []), variables))
    if len(effects) > MAX_EFFECTS:
        raise GameFileError(f"action {name!r} has more than {MAX_EFFECTS} effects")
    return Action(name, parameters, precondition, effects)


def parse_problem(text: str, domain: Domain) -> Problem:
    """Read a PDDL problem of this domain."""
    objects: dict[str, str] = {}
    init: tuple[Fact, ...] = ()
    goal: Condition | None = None
    listed: list[Typed] = list(domain.constants)
    facts: list[Expression] = []
    for keyword, rest in _sections(read_expression(text, "problem"), "problem"):
        if keyword == ":objects":
            listed.extend(_typed_list(rest, "(:objects ...)"))
        elif keyword == ":init":
            facts = rest
        elif keyword == ":goal":
            if len(rest) != 1:
                raise GameFileError(f"the goal must be one condition, it has {len(rest)} parts")
            goal = _Reader(domain.arities, "the goal").condition(rest[0], frozenset())
        elif keyword not in ("problem", ":domain", ":requirements", ":metric"):
            raise GameFileError(f"the engine does not know {keyword!r} in a problem; remove it")
    if goal is None:
        raise GameFileError("the problem has no (:goal ...); is the file truncated?")
    objects = _objects(listed, domain)
    init = _init(facts, objects, domain)
    return Problem(objects, init, goal)


def _objects(listed: list[Typed], domain: Domain) -> dict[str, str]:
    if len(listed) > MAX_OBJECTS:
        raise GameFileError(f"the problem has {len(listed)} objects, more than {MAX_OBJECTS}")
    objects: dict[str, str] = {}
    for entry in listed:
        if entry.type not in domain.supertypes:
            raise GameFileError(f"object {entry.name!r} is of an undeclared type {entry.type!r}")
        if objects.setdefault(entry.name, entry.type) != entry.type:
            raise GameFileError(f"object {entry.name!r} is declared with two types")
    return objects


def _init(facts: list[Expression], objects: dict[str, str], domain: Domain) -> tuple[Fact, ...]:
    """Return the facts that hold first, sorted; function values and negated facts add nothing."""
    if len(facts) > MAX_INIT_FACTS:
        raise GameFileError(f"(:init ...) has {len(facts)} facts, more than {MAX_INIT_FACTS}")
    result: set[Fact] = set()
    for expression in facts:
        parts = _as_list(expression, "a fact of (:init ...)")
        if parts and parts[0] in ("=", "not"):
            continue
        fact = tuple(_as_names(parts, "a fact of (:init ...)"))
        if not fact or domain.arities.get(fact[0]) != len(fact) - 1:
            raise GameFileError(
                f"the fact {_show(expression)} of (:init ...) is of no declared predicate; "
                "declare it in (:predicates ...) with as many arguments"
            )
        for name in fact[1:]:
            if name not in objects:
                raise GameFileError(f"unknown object {name!r} in the fact {_show(expression)}")
        result.add(fact)
    return tuple(sorted(result))
