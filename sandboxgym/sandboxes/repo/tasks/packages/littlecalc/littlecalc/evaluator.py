"""From a tree to a value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from littlecalc.errors import CalcError
from littlecalc.reader import parse
from littlecalc.tree import Binary, Call, Name, Node, Number, Unary

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
MAX_POWER = 1000


def calculate(formula: str, names: Mapping[str, float] | None = None) -> float:
    """The value of a formula.

    Comparisons are 1 where they hold and 0 where not. The functions are `min`, `max`, `abs`,
    `round` (with a number of digits, if wanted), `if(condition, then, otherwise)` and
    `clamp(value, low, high)`.

    Args:
        formula: What to calculate.
        names: What the names in it stand for.

    Raises:
        CalcError: It cannot be read, has an unknown name, or no value.
    """
    return _value(parse(formula), names or {})


def names_in(formula: str) -> list[str]:
    """The names that a formula needs, each once, in the order in which they come."""
    found: list[str] = []
    waiting: list[Node] = [parse(formula)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Name):
            if node.name not in found:
                found.append(node.name)
        elif isinstance(node, Unary):
            waiting.append(node.operand)
        elif isinstance(node, Binary):
            waiting.extend((node.right, node.left))
        elif isinstance(node, Call):
            waiting.extend(reversed(node.arguments))
    return found


def _value(node: Node, names: Mapping[str, float]) -> float:
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Name):
        if node.name not in names:
            raise CalcError(f"unknown name {node.name!r}")
        return names[node.name]
    if isinstance(node, Unary):
        value = _value(node.operand, names)
        return -value if node.operator == "-" else value
    if isinstance(node, Binary):
        return _combined(node.operator, _value(node.left, names), _value(node.right, names))
    return _called(node, names)


def _combined(operator_: str, left: float, right: float) -> float:
    if operator_ in ("/", "//", "%") and right == 0:
        raise CalcError("division by zero")
    if operator_ == "**" and abs(right) > MAX_POWER:
        raise CalcError("the power is too large")
    value = BINARY[operator_](left, right)
    return int(value) if isinstance(value, bool) else value


def _called(call: Call, names: Mapping[str, float]) -> float:
    if call.function == "if":
        condition, then, otherwise = _exactly(3, call)
        return _value(then if _value(condition, names) else otherwise, names)
    values = [_value(argument, names) for argument in call.arguments]
    if call.function in ("min", "max"):
        if not values:
            raise CalcError(f"{call.function} needs a value")
        return min(values) if call.function == "min" else max(values)
    if call.function == "abs":
        _exactly(1, call)
        return abs(values[0])
    if call.function == "round":
        return _rounded(values)
    if call.function == "clamp":
        _exactly(3, call)
        value, low, high = values
        return max(low, min(value, high))
    raise CalcError(f"unknown function {call.function!r}")


def _exactly(number: int, call: Call) -> tuple[Node, ...]:
    if len(call.arguments) != number:
        raise CalcError(f"{call.function} takes {number} arguments, not {len(call.arguments)}")
    return call.arguments


def _rounded(values: list[float]) -> float:
    """Round halves away from zero, as people do."""
    if not 1 <= len(values) <= 2:
        raise CalcError("round takes a value, and digits if wanted")
    digits = int(values[1]) if len(values) == 2 else 0
    scale = 10**digits
    shifted = abs(values[0]) * scale + 0.5
    whole = int(shifted) / scale if digits else int(shifted)
    return -whole if values[0] < 0 else whole
