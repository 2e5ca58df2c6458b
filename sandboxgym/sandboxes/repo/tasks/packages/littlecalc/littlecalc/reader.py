"""From tokens to a tree, by precedence climbing."""

from __future__ import annotations

from littlecalc.errors import CalcError
from littlecalc.tokens import Token, tokenize
from littlecalc.tree import Binary, Call, Name, Node, Number, Unary

PRECEDENCE = {
    "==": 1,
    "!=": 1,
    "<": 2,
    "<=": 2,
    ">": 2,
    ">=": 2,
    "+": 3,
    "-": 3,
    "*": 4,
    "/": 4,
    "//": 4,
    "%": 4,
    "**": 6,
}
SIGN = 5
"""A sign binds more than a product and less than a power: -2 ** 2 is -4."""


def parse(formula: str) -> Node:
    """Read a formula.

    Raises:
        CalcError: It is none; the error says where.
    """
    reader = _Reader(tokenize(formula))
    tree = reader.expression(0)
    reader.expect_end()
    return tree


class _Reader:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        taken = self.token
        self.at += 1
        return taken

    def accept(self, text: str) -> bool:
        if self.token.kind != "operator" or self.token.text != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise CalcError(f"{text!r} is missing", self.token.position)

    def expect_end(self) -> None:
        if self.token.kind != "end":
            raise CalcError(f"unexpected {self.token.text!r}", self.token.position)

    def expression(self, lowest: int) -> Node:
        left = self.operand()
        while self.token.kind == "operator":
            strength = PRECEDENCE.get(self.token.text, 0)
            if strength == 0 or strength < lowest:
                break
            operator = self.take().text
            # Powers are read from the right: 2 ** 3 ** 2 is 2 ** 9.
            right = self.expression(strength if operator == "**" else strength + 1)
            left = Binary(operator, left, right)
        return left

    def operand(self) -> Node:
        token = self.take()
        if token.kind == "number":
            return Number(float(token.text) if "." in token.text else int(token.text))
        if token.kind == "name":
            if self.accept("("):
                return Call(token.text, self.arguments())
            return Name(token.text)
        if token.text in ("-", "+"):
            return Unary(token.text, self.expression(SIGN))
        if token.text == "(":
            inner = self.expression(0)
            self.expect(")")
            return inner
        if token.kind == "end":
            raise CalcError("the formula ends too early", token.position)
        raise CalcError(f"unexpected {token.text!r}", token.position)

    def arguments(self) -> tuple[Node, ...]:
        if self.accept(")"):
            return ()
        found = [self.expression(0)]
        while self.accept(","):
            found.append(self.expression(0))
        self.expect(")")
        return tuple(found)
