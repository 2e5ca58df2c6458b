"""What a formula consists of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Number:
    """A number as it was written."""

    value: float


@dataclass(frozen=True)
class Name:
    """A name that stands for a number."""

    name: str


@dataclass(frozen=True)
class Unary:
    """A sign and what it belongs to."""

    operator: str
    operand: Node


@dataclass(frozen=True)
class Binary:
    """Two operands with an operator between."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Call:
    """A function and its arguments."""

    function: str
    arguments: tuple[Node, ...]


Node = Union[Number, Name, Unary, Binary, Call]  # noqa: UP007 - the names come later
