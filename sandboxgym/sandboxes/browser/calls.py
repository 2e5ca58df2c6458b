"""A call as text, such as `fill('12', "it's", delay=0.5)`, taken apart. Nothing is evaluated."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = str | int | float | bool | list[str] | None

_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_WORDS: dict[str, Value] = {"None": None, "True": True, "False": False}
_WORDS.update({"null": None, "true": True, "false": False})
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\n": ""}
_CODES = {"x": 2, "u": 4, "U": 8}  # digits of an escape that names a character by its number


class CallSyntaxError(ValueError):
    """The text is not one call; the message says where it stops being one."""


@dataclass(frozen=True)
class Call:
    """A name, and what stands between the parentheses."""

    name: str
    positional: tuple[Value, ...]
    named: dict[str, Value]


def read_call(text: str) -> Call:
    """Take one call apart.

    Raises:
        CallSyntaxError: It is not one.
    """
    reader = _Reader(text)
    name = reader.match(_NAME)
    if name is None:
        raise reader.error("an action begins with its name, as in click('12')")
    reader.expect("(")
    positional: list[Value] = []
    named: dict[str, Value] = {}
    while not reader.accept(")"):
        if positional or named:
            if not reader.accept(","):
                raise reader.error("expected ',' or ')'")
            if reader.accept(")"):  # after a trailing comma
                break
        key = reader.keyword()
        if key is None and named:
            raise reader.error("an argument without a name cannot follow one with a name")
        if key in named:
            raise reader.error(f"{key!r} is given twice")
        value = reader.value()
        if key is None:
            positional.append(value)
        else:
            named[key] = value
    if not reader.at_end():
        raise reader.error("there is something after the closing parenthesis: one action at a time")
    return Call(name, tuple(positional), named)


class _Reader:
    """A place in a text, and what is found from there on."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def error(self, reason: str) -> CallSyntaxError:
        return CallSyntaxError(f"{reason} (at character {self._at} of {self._text[:200]!r})")

    def match(self, pattern: re.Pattern[str]) -> str | None:
        self._skip_space()
        found = pattern.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found.group()

    def accept(self, mark: str) -> bool:
        self._skip_space()
        if not self._text.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            raise self.error(f"expected {mark!r}")

    def at_end(self) -> bool:
        self._skip_space()
        return self._at == len(self._text)

    def keyword(self) -> str | None:
        """The name before an equals sign, or None with the place unchanged."""
        start = self._at
        name = self.match(_NAME)
        if name is not None and self.accept("="):
            return name
        self._at = start
        return None

    def value(self) -> Value:
        self._skip_space()
        mark = self._text[self._at : self._at + 1]
        if mark in ("'", '"'):
            return self._string(mark)
        if mark == "[":
            return self._list()
        number = self.match(_NUMBER)
        if number is not None:
            return self._number(number)
        start = self._at
        word = self.match(_NAME)
        if word in _WORDS:
            return _WORDS[word]
        self._at = start
        raise self.error("expected a string in quotes, a number, a list of strings, True or None")

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        assert found is not None  # it matches the empty string
        self._at = found.end()

    def _number(self, text: str) -> int | float:
        if text.lstrip("+-").isdigit() and len(text) <= 15:
            return int(text)
        number = float(text)
        if not math.isfinite(number):
            raise self.error(f"{text} is too large a number")
        return number

    def _list(self) -> list[str]:
        self.expect("[")
        items: list[str] = []
        while not self.accept("]"):
            if items:
                self.expect(",")
                if self.accept("]"):
                    break
            item = self.value()
            if not isinstance(item, str):
                raise self.error("a list holds strings")
            items.append(item)
        return items

    def _string(self, quote: str) -> str:
        self._at += 1
        parts: list[str] = []
        while True:
            mark = self._text[self._at : self._at + 1]
            if not mark:
                raise self.error(f"the string has no closing {quote}")
            self._at += 1
            if mark == quote:
                return "".join(parts)
            parts.append(self._escape() if mark == "\\" else mark)

    def _escape(self) -> str:
        mark = self._text[self._at : self._at + 1]
        self._at += 1
        if mark not in _CODES:
            return _ESCAPES.get(mark, mark)
        digits = self._text[self._at : self._at + _CODES[mark]]
        try:
            character = chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise self.error(f"\\{mark}{digits} names no character") from None
        self._at += len(digits)
        return character
