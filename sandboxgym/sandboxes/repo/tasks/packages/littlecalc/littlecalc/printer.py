"""From a tree back to a formula."""

from __future__ import annotations

from littlecalc.reader import PRECEDENCE, SIGN
from littlecalc.tree import Binary, Call, Name, Node, Number, Unary


def show(node: Node) -> str:
    """A formula that is read as the same tree, with no more parentheses than needed."""
    return _shown(node, 0)


def _shown(node: Node, lowest: int) -> str:
    if isinstance(node, Number):
        return str(node.value)
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Call):
        return f"{node.function}({', '.join(show(argument) for argument in node.arguments)})"
    if isinstance(node, Unary):
        text = node.operator + _shown(node.operand, SIGN)
        return f"({text})" if lowest > SIGN else text
    return _shown_binary(node, lowest)


def _shown_binary(node: Binary, lowest: int) -> str:
    strength = PRECEDENCE[node.operator]
    from_right = node.operator == "**"
    left = _shown(node.left, strength + 1 if from_right else strength)
    right = _shown(node.right, strength if from_right else strength + 1)
    text = f"{left} {node.operator} {right}"
    return f"({text})" if strength < lowest else text
