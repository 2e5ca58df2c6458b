"""From characters to tokens."""

from __future__ import annotations

from dataclasses import dataclass

from littlecalc.errors import CalcError

OPERATORS = ("**", "//", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "<", ">", "(", ")", ",")


@dataclass(frozen=True)
class Token:
    """A piece of a formula.

    Attributes:
        kind: "number", "name", "operator" or "end".
        text: As it is written.
        position: Where it starts.
    """

    kind: str
    text: str
    position: int


def tokenize(formula: str) -> list[Token]:
    """Split a formula; the last token is always an "end".

    Raises:
        CalcError: There is a character that no token starts with.
    """
    tokens: list[Token] = []
    at = 0
    while at < len(formula):
        character = formula[at]
        if character.isspace():
            at += 1
            continue
        if character.isdigit() or character == ".":
            text = _number(formula, at)
            tokens.append(Token("number", text, at))
        elif character.isalpha() or character == "_":
            text = _name(formula, at)
            tokens.append(Token("name", text, at))
        else:
            text = _operator(formula, at)
            tokens.append(Token("operator", text, at))
        at += len(text)
    tokens.append(Token("end", "", len(formula)))
    return tokens


def _number(formula: str, start: int) -> str:
    at = start
    seen_point = False
    while at < len(formula):
        character = formula[at]
        if character == "." and not seen_point:
            seen_point = True
        elif not character.isdigit():
            break
        at += 1
    text = formula[start:at]
    if text == ".":
        raise CalcError("a point alone is no number", start)
    return text


def _name(formula: str, start: int) -> str:
    at = start
    while at < len(formula) and (formula[at].isalnum() or formula[at] == "_"):
        at += 1
    return formula[start:at]


def _operator(formula: str, start: int) -> str:
    for operator in OPERATORS:
        if formula.startswith(operator, start):
            return operator
    raise CalcError(f"unexpected {formula[start]!r}", start)
