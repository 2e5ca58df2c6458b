"""Keys of a US keyboard, as `Input.dispatchKeyEvent` wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MODIFIER_BITS = {"Alt": 1, "Control": 2, "ControlOrMeta": 2, "Meta": 4, "Shift": 8}

# name -> (code, virtual key code)
_NAMED = {
    "Backspace": ("Backspace", 8),
    "Tab": ("Tab", 9),
    "Enter": ("Enter", 13),
    "Escape": ("Escape", 27),
    "PageUp": ("PageUp", 33),
    "PageDown": ("PageDown", 34),
    "End": ("End", 35),
    "Home": ("Home", 36),
    "ArrowLeft": ("ArrowLeft", 37),
    "ArrowUp": ("ArrowUp", 38),
    "ArrowRight": ("ArrowRight", 39),
    "ArrowDown": ("ArrowDown", 40),
    "Insert": ("Insert", 45),
    "Delete": ("Delete", 46),
    "Shift": ("ShiftLeft", 16),
    "Control": ("ControlLeft", 17),
    "Alt": ("AltLeft", 18),
    "Meta": ("MetaLeft", 91),
    **{f"F{n}": (f"F{n}", 111 + n) for n in range(1, 13)},
}
_TEXT_OF = {"Enter": "\r"}
# The character, the one with Shift, the code, and the virtual key code.
_PRINTED = [
    ("`", "~", "Backquote", 192),
    ("-", "_", "Minus", 189),
    ("=", "+", "Equal", 187),
    ("[", "{", "BracketLeft", 219),
    ("]", "}", "BracketRight", 221),
    ("\\", "|", "Backslash", 220),
    (";", ":", "Semicolon", 186),
    ("'", '"', "Quote", 222),
    (",", "<", "Comma", 188),
    (".", ">", "Period", 190),
    ("/", "?", "Slash", 191),
    (" ", " ", "Space", 32),
    *(
        (digit, shifted, f"Digit{digit}", 48 + int(digit))
        for digit, shifted in zip("0123456789", ")!@#$%^&*(", strict=True)
    ),
    *((chr(97 + n), chr(65 + n), f"Key{chr(65 + n)}", 65 + n) for n in range(26)),
]
_CHARACTERS = {c: (code, number) for plain, _, code, number in _PRINTED for c in (plain,)}
_SHIFTED = {c: (code, number) for _, c, code, number in _PRINTED}
# What an editor does on a combination: Chromium leaves that to the driver.
_EDITING = {
    ("Control", "a"): "selectAll",
    ("Control", "c"): "copy",
    ("Control", "x"): "cut",
    ("Control", "z"): "undo",
    ("Control", "y"): "redo",
}


class UnknownKeyError(ValueError):
    """There is no such key."""


@dataclass(frozen=True)
class Key:
    """A key, by the name that `KeyboardEvent.key` has for it."""

    name: str
    code: str
    number: int
    text: str

    def event(self, kind: str, modifiers: int) -> dict[str, Any]:
        """Parameters of `Input.dispatchKeyEvent`, with "keyDown" or "keyUp" as `kind`."""
        event: dict[str, Any] = {
            "type": kind,
            "key": self.name,
            "code": self.code,
            "windowsVirtualKeyCode": self.number,
            "modifiers": modifiers,
        }
        held = modifiers & ~MODIFIER_BITS["Shift"]
        if kind == "keyDown":
            if self.text and not held:
                event["text"] = self.text
            else:
                event["type"] = "rawKeyDown"
            command = _EDITING.get(("Control", self.name.lower()))
            if command is not None and held == MODIFIER_BITS["Control"]:
                event["commands"] = [command]
        return event


def key(name: str) -> Key:
    """The key of a name such as "Enter", or of a character.

    Raises:
        UnknownKeyError: There is none.
    """
    name = {"Space": " ", "ControlOrMeta": "Control", "\n": "Enter", "\t": "Tab"}.get(name, name)
    if name in _NAMED:
        code, number = _NAMED[name]
        return Key(name, code, number, _TEXT_OF.get(name, ""))
    found = _CHARACTERS.get(name) or _SHIFTED.get(name)
    if found is None:
        raise UnknownKeyError(
            f"there is no key {name!r}: a character, or one of {', '.join(_NAMED)}"
        )
    return Key(name, *found, name)


def combination(text: str) -> list[Key]:
    """The keys of "Control+Shift+a", modifiers first.

    Raises:
        UnknownKeyError: One of them does not exist.
    """
    names = text.split("+") if text != "+" else ["+"]
    if text.endswith("++"):
        names = [*text[:-2].split("+"), "+"]
    keys = [key(name) for name in names]
    for held in keys[:-1]:
        if held.name not in MODIFIER_BITS:
            raise UnknownKeyError(f"{held.name!r} in {text!r} is no modifier")
    return keys
