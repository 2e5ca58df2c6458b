"""Reading TWL2, the grammar that a game file embeds: how the game is commanded and told.

A document has blocks such as::

    action OpenObject {
        template :: "open {r}";
        feedback :: "#OpenObject.feedback#";
        grammar :: \"\"\" {"OpenObject.feedback": [{"rhs": "You open the {r.name}."}]} \"\"\";
    }

and grammars outside of any action. A grammar maps symbols to alternatives, of which the first whose
`condition` holds is told. A template is text with ``#symbol#``, ``{expression}``,
``{expression | query}`` (once for each answer) and ``[{expression | query}]`` (as a list with
separators). A query is ``predicate(variable:type, ...) & ...``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.text.expressions import check_expression

MAX_SYMBOLS = 5_000
MAX_QUESTIONS = 20

DENIED = "not_"
"""What a predicate is preceded by to ask whether it was told that it ceased to hold."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A variable of a query; it is another one if its type is another."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Question:
    """One predicate of a query; ``not_opened`` asks whether it was told that something closed."""

    predicate: str
    args: tuple[Placeholder, ...]


Query: TypeAlias = tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """Text that is told as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol of the grammar, to be replaced by one of its alternatives."""

    name: str


@dataclass(frozen=True, slots=True)
class Print:
    """The value of an expression."""

    expression: str


@dataclass(frozen=True, slots=True)
class Each:
    """A part that is told once for each answer to the query, or once if there is no query."""

    part: Symbol | Print
    query: Query | None


@dataclass(frozen=True, slots=True)
class Listing:
    """The answers, separated by the grammar's ``list_separator`` and ``list_last_separator``."""

    each: Each


Part: TypeAlias = "Words | Symbol | Each | Listing"
Template: TypeAlias = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """What a symbol can be replaced by, if the condition has an answer."""

    condition: Query | None
    template: Template


@dataclass(frozen=True, slots=True)
class ActionText:
    """How an action is commanded, and what is told afterwards."""

    command: Template
    feedback: Template


@dataclass(frozen=True, slots=True)
class Grammar:
    """A whole document; actions by their name in lower case."""

    actions: dict[str, ActionText]
    symbols: dict[str, tuple[Alternative, ...]]

    def questions(self) -> Iterator[Question]:
        """Yield every question that is asked anywhere."""
        templates = [
            template for text in self.actions.values() for template in (text.command, text.feedback)
        ]
        for alternatives in self.symbols.values():
            for alternative in alternatives:
                templates.append(alternative.template)
                yield from alternative.condition or ()
        for template in templates:
            for part in template:
                each = part.each if isinstance(part, Listing) else part
                if isinstance(each, Each):
                    yield from each.query or ()


# --- Documents -----------------------------------------------------------------------------------

_BLANK = re.compile(r"(?:\s+|#[^\n]*)*")
_NAME = re.compile(r"[\w/-]+")
_BLOCK = re.compile(r'"""(.*?)"""', re.DOTALL)
_STRING = re.compile(r'"([^"]*)"')


class _Scanner:
    """Takes tokens off the front of a document."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._skip()

    def at_end(self) -> bool:
        return self._place == len(self._text)

    def takes(self, literal: str) -> bool:
        """Whether the literal comes next; if so, it is taken."""
        if not self._text.startswith(literal, self._place):
            return False
        self._place += len(literal)
        self._skip()
        return True

    def take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        match = pattern.match(self._text, self._place)
        if match is None:
            found = self._text[self._place : self._place + 30] or "the end"
            line = self._text.count("\n", 0, self._place) + 1
            raise GameFileError(f"line {line} of the grammar: expected {what}, found {found!r}")
        self._place = match.end()
        self._skip()
        return match

    def expect(self, literal: str) -> None:
        self.take(re.compile(re.escape(literal)), repr(literal))

    def _skip(self) -> None:
        match = _BLANK.match(self._text, self._place)
        self._place = match.end() if match else self._place


def parse_grammar(text: str) -> Grammar:
    """Read a TWL2 document."""
    scanner = _Scanner(text)
    actions: dict[str, ActionText] = {}
    symbols: dict[str, Any] = {}
    while not scanner.at_end():
        if scanner.takes("action"):
            name = scanner.take(_NAME, "the name of an action").group()
            actions[name.lower()] = _action(scanner, name, symbols)
        elif scanner.takes("grammar"):
            symbols.update(_json(_value(scanner, _BLOCK), "grammar"))
        else:
            scanner.expect("action")
    if len(symbols) > MAX_SYMBOLS:
        raise GameFileError(f"the grammar has {len(symbols)} symbols, more than {MAX_SYMBOLS}")
    return Grammar(actions, {name: _alternatives(name, rules) for name, rules in symbols.items()})


def _value(scanner: _Scanner, pattern: re.Pattern[str]) -> str:
    """Take ``:: value ;``."""
    scanner.expect("::")
    value = scanner.take(pattern, "a string in quotes").group(1)
    scanner.expect(";")
    return value


def _action(scanner: _Scanner, name: str, symbols: dict[str, Any]) -> ActionText:
    templates: dict[str, Template] = {}
    scanner.expect("{")
    while not scanner.takes("}"):
        field = scanner.take(_NAME, "template, feedback or grammar").group()
        if field in ("template", "feedback"):
            templates[field] = parse_template(_value(scanner, _STRING), f"action {name!r}")
        elif field == "grammar":
            lines = _value(scanner, _BLOCK).split("\n")
            uncommented = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
            symbols.update(_json(uncommented, f"action {name!r}"))
        elif field == "pddl":
            _value(scanner, _BLOCK)  # the domain says it again
        else:
            raise GameFileError(f"action {name!r} of the grammar has an unknown part {field!r}")
    for field in ("template", "feedback"):
        if field not in templates:
            raise GameFileError(f"action {name!r} of the grammar has no {field}")
    return ActionText(templates["template"], templates["feedback"])


def _json(text: str, where: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GameFileError(f"the symbols of {where} are no valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise GameFileError(f"the symbols of {where} must be a JSON object, not {type(data)}")
    return data


def _alternatives(name: str, rules: Any) -> tuple[Alternative, ...]:
    where = f"symbol {name!r}"
    if not isinstance(rules, list) or not rules:
        raise GameFileError(f"{where} must have a list of alternatives, each with its 'rhs'")
    result: list[Alternative] = []
    for rule in rules:
        if not isinstance(rule, dict) or not isinstance(rule.get("rhs"), str):
            raise GameFileError(f"an alternative of {where} has no text 'rhs'")
        condition = rule.get("condition", "")
        if not isinstance(condition, str):
            raise GameFileError(f"a condition of {where} is no text")
        query = parse_query(condition, where) if condition else None
        result.append(Alternative(query, parse_template(rule["rhs"], where)))
    return tuple(result)


# --- Queries -------------------------------------------------------------------------------------

_QUESTION = re.compile(r"\s*(!?)([\w/]+)\s*\(([^()]*)\)\s*")
_PLACEHOLDER = re.compile(r"\s*([\w']+)\s*(?::\s*([\w/-]+)\s*)?")


def parse_query(text: str, where: str) -> Query:
    """Read ``predicate(variable:type, ...) & ...``."""
    parts = text.split("&")
    if len(parts) > MAX_QUESTIONS:
        raise GameFileError(f"a query of {where} has more than {MAX_QUESTIONS} predicates")
    questions: list[Question] = []
    types: dict[str, str] = {}
    for part in parts:
        match = _QUESTION.fullmatch(part)
        if match is None:
            raise GameFileError(
                f"the query {text[:80]!r} of {where} is not understood at {part.strip()[:40]!r}; "
                "expected predicate(variable:type, ...)"
            )
        negation, predicate, arguments = match.groups()
        args: list[Placeholder] = []
        for argument in arguments.split(",") if arguments.strip() else ():
            parsed = _PLACEHOLDER.fullmatch(argument)
            if parsed is None:
                raise GameFileError(
                    f"the variable {argument.strip()[:40]!r} in a query of {where} is not "
                    "understood; expected variable:type"
                )
            name = parsed.group(1)
            type_name = parsed.group(2) or name.rstrip("'")
            if types.setdefault(name, type_name) != type_name:
                raise GameFileError(f"the variable {name!r} in a query of {where} has two types")
            args.append(Placeholder(name, type_name))
        questions.append(Question(DENIED + predicate if negation else predicate, tuple(args)))
    return tuple(questions)


# --- Templates -----------------------------------------------------------------------------------

_TABS = re.compile(r"\t+")
_LINE_START = re.compile(r"^(?://.*|\s*)\n?", re.MULTILINE)
_WORDS = re.compile(r'[^;|"<>\[\]#{}]*')
_TAG = re.compile(r"[\w()/!<>\-\s,.]+")
_STATEMENT = re.compile(r"[^|\[\]{}\n<>]+")
_BAR = re.compile(r"\s*\|\s*")
_GIVEN = re.compile(r"[^;|{}\n\[\]#]+")


def parse_template(text: str, where: str) -> Template:
    """Read a template the way the stock parser does.

    It has two habits that show in the texts: blanks at the very start vanish (and so do tabs at the
    start of any part), and the template ends at the first character that fits nothing, such as a
    ``;`` or a brace without a partner.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise GameFileError(f"{where} has half a character in its text: {error}") from error
    reader = _TemplateReader(text, where)
    parts: list[Part] = []
    place = 0
    while (read := reader.part(place)) is not None and read[1] > place:
        parts.append(read[0])
        place = read[1]
    return tuple(parts)


class _TemplateReader:
    """Every method reads one thing at a place: it returns that and the place behind, or None."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where

    def part(self, place: int) -> tuple[Part, int] | None:
        return (
            self._listing(place) or self._each(place) or self._symbol(place) or self._words(place)
        )

    def _skip(self, place: int) -> int:
        while True:
            start = place
            for blank in (_LINE_START, _TABS):
                if match := blank.match(self._text, place):
                    place = match.end()
            if place == start:
                return place

    def _token(self, literal: str, place: int) -> int | None:
        place = self._skip(place)
        return place + len(literal) if self._text.startswith(literal, place) else None

    def _listing(self, place: int) -> tuple[Listing, int] | None:
        opened = self._token("[", place)
        each = self._each(opened) if opened is not None else None
        closed = self._token("]", each[1]) if each else None
        return (Listing(each[0]), closed) if each and closed is not None else None

    def _each(self, place: int) -> tuple[Each, int] | None:
        opened = self._token("{", place)
        if opened is None:
            return None
        read = self._symbol(opened) or self._print(opened)
        if read is None:
            return None
        part, place = read
        query, place = self._given(place)
        closed = self._token("}", place)
        if closed is None:
            return None
        if isinstance(part, Print):
            check_expression(part.expression)
        return Each(part, None if query is None else parse_query(query, self._where)), closed

    def _given(self, place: int) -> tuple[str | None, int]:
        bar = _BAR.match(self._text, place)
        given = _GIVEN.match(self._text, self._skip(bar.end())) if bar else None
        return (given.group(), given.end()) if given else (None, place)

    def _print(self, place: int) -> tuple[Print, int] | None:
        match = _STATEMENT.match(self._text, self._skip(place))
        return (Print(match.group()), match.end()) if match else None

    def _symbol(self, place: int) -> tuple[Symbol, int] | None:
        opened = self._token("#", place)
        tag = _TAG.match(self._text, self._skip(opened)) if opened is not None else None
        closed = self._token("#", tag.end()) if tag else None
        return (Symbol(tag.group()), closed) if tag and closed is not None else None

    def _words(self, place: int) -> tuple[Words, int] | None:
        opened = self._token('"', place)
        if opened is not None:
            quoted = _WORDS.match(self._text, opened)
            closed = self._token('"', quoted.end()) if quoted else None
            if quoted and closed is not None:
                return Words(quoted.group()), closed
        match = _WORDS.match(self._text, self._skip(place))
        return (Words(match.group()), match.end()) if match else None
