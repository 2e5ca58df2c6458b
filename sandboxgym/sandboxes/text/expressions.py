"""The expressions in braces of a grammar, such as ``{o.indefinite + ' ' + (o.name or o.id)}``.

They look like Python, and the stock engine hands them to Python's `eval`. Here they become closures
over the entities in scope, made of attributes from a fixed list, string constants, ``+``, ``==``,
``!=``, ``not``, ``and``, ``or`` and parentheses. Nothing else exists, so no game file can run code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sandboxgym.core.errors import GameFileError

MAX_TOKENS = 100
MAX_NESTING = 20


@dataclass(frozen=True, slots=True, eq=False)
class Entity:
    """An object as the story names it."""

    id: str
    type: str
    name: str
    definite: str = "the"
    indefinite: str = "a"


Value: TypeAlias = "str | bool | Entity | None"
Evaluate: TypeAlias = Callable[[Sequence[Entity]], Value]

_ATTRIBUTES: dict[str, Callable[[Entity], Value]] = {
    "id": lambda entity: entity.id,
    "type": lambda entity: entity.type,
    "name": lambda entity: entity.name,
    "definite": lambda entity: entity.definite,
    "indefinite": lambda entity: entity.indefinite,
    # TextWorld sets these only in the games that it generates itself.
    **dict.fromkeys(("noun", "adj", "desc", "room_type", "synonyms"), lambda entity: None),
}

_TOKEN = re.compile(
    r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|==|!=|[+().])\s*""",
    re.ASCII | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_KEYWORDS = frozenset({"and", "or", "not"})


def compile_expression(source: str, slot: Callable[[str], int]) -> Evaluate:
    """Turn an expression into a function from the entities in scope to its value.

    Args:
        source: The text between the braces.
        slot: Returns where in the scope a variable is; raises `GameFileError` if there is none.
    """
    return _Parser(source, slot).parse()


def check_expression(source: str) -> None:
    """Raise `GameFileError` if the text is no expression, whatever its variables are."""
    compile_expression(source, lambda name: 0)


def as_text(value: Value) -> str:
    """Return a value as the story prints it."""
    return value.name if isinstance(value, Entity) else str(value)


class _Parser:
    """Recursive descent, one method per level of precedence."""

    def __init__(self, source: str, slot: Callable[[str], int]) -> None:
        self._source = source
        self._slot = slot
        self._tokens = self._tokenize()
        self._next = 0
        self._depth = 0

    def parse(self) -> Evaluate:
        result = self._or()
        if self._peek():
            raise self._error(f"{self._peek()!r} is not expected there")
        return result

    def _tokenize(self) -> list[str]:
        tokens: list[str] = []
        place = 0
        while place < len(self._source):
            match = _TOKEN.match(self._source, place)
            if match is None:
                found = self._source[place : place + 20]
                raise self._error(f"{found!r} is nothing that an expression can have")
            tokens.append(match.group(1))
            place = match.end()
            if len(tokens) > MAX_TOKENS:
                raise self._error("it is too long")
        return tokens

    def _error(self, reason: str) -> GameFileError:
        return GameFileError(
            f"the expression {{{self._source[:80]}}} is not understood: {reason}; use variables, "
            "their attributes, strings, +, ==, !=, not, and, or"
        )

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self, *wanted: str) -> str:
        """Take the next token if it is one of those wanted; return '' if not."""
        token = self._peek()
        if token not in wanted:
            return ""
        self._next += 1
        return token

    def _or(self) -> Evaluate:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._error(f"it is nested more than {MAX_NESTING} levels deep")
        result = self._and()
        while self._take("or"):
            result = _either(result, self._and())
        self._depth -= 1
        return result

    def _and(self) -> Evaluate:
        result = self._not()
        while self._take("and"):
            result = _both(result, self._not())
        return result

    def _not(self) -> Evaluate:
        if not self._take("not"):
            return self._comparison()
        return _negation(self._not())

    def _comparison(self) -> Evaluate:
        left = self._sum()
        sign = self._take("==", "!=")
        if not sign:
            return left
        return _equal(left, self._sum(), wanted=sign == "==")

    def _sum(self) -> Evaluate:
        result = self._operand()
        while self._take("+"):
            result = _concatenate(result, self._operand(), self._source)
        return result

    def _operand(self) -> Evaluate:
        token = self._peek()
        if not token:
            raise self._error("it ends too early")
        self._next += 1
        if token == "(":
            result = self._or()
            if not self._take(")"):
                raise self._error("a ')' is missing")
            return result
        if token[0] in "'\"":
            return _constant(_ESCAPE.sub(self._unescape, token[1:-1]))
        if token in _KEYWORDS or not token.isidentifier():
            raise self._error(f"{token!r} is not expected there")
        return self._variable(token)

    def _variable(self, name: str) -> Evaluate:
        slot = self._slot(name)
        if not self._take("."):
            return lambda scope: scope[slot]
        attribute = self._peek()
        self._next += 1
        read = _ATTRIBUTES.get(attribute)
        if read is None:
            raise self._error(f"an entity has no attribute {attribute!r}")
        return lambda scope: read(scope[slot])

    def _unescape(self, match: re.Match[str]) -> str:
        if match.group(1) not in _ESCAPED:
            raise self._error(f"the escape {match.group()!r} is not known")
        return _ESCAPED[match.group(1)]


def _constant(text: str) -> Evaluate:
    return lambda scope: text


def _either(left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda scope: left(scope) or right(scope)


def _both(left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda scope: left(scope) and right(scope)


def _negation(part: Evaluate) -> Evaluate:
    return lambda scope: not part(scope)


def _equal(left: Evaluate, right: Evaluate, *, wanted: bool) -> Evaluate:
    def identity(value: Value) -> object:
        return (Entity, value.id) if isinstance(value, Entity) else value

    return lambda scope: (identity(left(scope)) == identity(right(scope))) == wanted


def _concatenate(left: Evaluate, right: Evaluate, source: str) -> Evaluate:
    def concatenate(scope: Sequence[Entity]) -> Value:
        one, other = left(scope), right(scope)
        if isinstance(one, str) and isinstance(other, str):
            return one + other
        raise GameFileError(
            f"the expression {{{source[:80]}}} adds something that is no string; "
            "add names or other strings"
        )

    return concatenate
