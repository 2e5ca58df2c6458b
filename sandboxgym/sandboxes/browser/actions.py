"""What an agent can do in a browser, as text: `click('12')`, `fill('7', 'milk')`, `go_back()`.

The names are BrowserGym's, so that its users and their prompts feel at home.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandboxgym.sandboxes.browser.calls import CallSyntaxError, Value, read_call

MAX_ACTION = 100_000
MAX_WAIT_MS = 60_000
MAX_PIXELS = 100_000


@dataclass(frozen=True)
class Parameter:
    """One argument of an action: its name, its kind (a key of `_CHECKS`), and its default."""

    name: str
    kind: str
    default: Any = ...

    @property
    def required(self) -> bool:
        """Whether it has to be given."""
        return self.default is ...

    def __str__(self) -> str:
        return self.name if self.required else f"{self.name}={self.default!r}"


@dataclass(frozen=True)
class ActionKind:
    """One action of the grammar."""

    name: str
    parameters: tuple[Parameter, ...]
    meaning: str

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"


@dataclass(frozen=True)
class Action:
    """An action with all its arguments, defaults included."""

    name: str
    arguments: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @property
    def bids(self) -> dict[str, str]:
        """The arguments that name elements."""
        kinds = {p.name: p.kind for p in KINDS[self.name].parameters}
        return {name: v for name, v in self.arguments.items() if kinds[name] == "bid"}

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.name}({inside})"


class ActionError(ValueError):
    """The text is no action of the grammar; nothing was done, and the page is as it was."""


def parse(text: str) -> Action:
    """Read an action.

    Raises:
        ActionError: It is none; the message says why, and what there is.
    """
    try:
        call = read_call(text)
    except CallSyntaxError as error:
        raise ActionError(str(error)) from None
    name = call.name
    if name == "press" and len(call.positional) == 1 and not call.named:
        name = "keyboard_press"  # press('Enter'): wherever the keyboard is
    kind = KINDS.get(name)
    if kind is None:
        raise ActionError(f"there is no action {call.name!r}; there are: {', '.join(KINDS)}")
    if len(call.positional) > len(kind.parameters):
        raise ActionError(f"{kind} takes no more than {len(kind.parameters)} arguments")
    given = dict(zip((p.name for p in kind.parameters), call.positional, strict=False))
    for name, value in call.named.items():
        if name in given or name not in {p.name for p in kind.parameters}:
            raise ActionError(f"{kind}: {name!r} is given twice or does not exist")
        given[name] = value
    return Action(kind.name, {p.name: _checked(kind, p, given) for p in kind.parameters})


def describe() -> str:
    """The grammar as a text for a prompt: a line for each action."""
    return "\n".join(f"{kind}: {kind.meaning}" for kind in KINDS.values())


def _checked(kind: ActionKind, parameter: Parameter, given: dict[str, Value]) -> Any:
    if parameter.name not in given:
        if parameter.required:
            raise ActionError(f"{kind}: {parameter.name!r} is missing")
        return parameter.default
    value = given[parameter.name]
    wanted, check = _CHECKS[parameter.kind]
    accepted = check(value)
    if accepted is None:
        raise ActionError(f"{kind}: {parameter.name!r} is {value!r:.100}, and should be {wanted}")
    return accepted


def _bid(value: Value) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):  # click(12) for click('12')
        value = str(value)
    return value if isinstance(value, str) and value.isalnum() and len(value) <= 32 else None


def _text(value: Value) -> str | None:
    return value if isinstance(value, str) else None


def _number(limit: float) -> Any:
    def check(value: Value) -> float | None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number and abs(value) <= limit else None  # type: ignore[arg-type]

    return check


def _wait(value: Value) -> float | None:
    number: float | None = _number(MAX_WAIT_MS)(value)
    return number if number is not None and number >= 0 else None


def _index(value: Value) -> int | None:
    return value if type(value) is int and 0 <= value < 1000 else None


def _one_of(*words: str) -> Any:
    return lambda value: value if value in words else None


def _modifiers(value: Value) -> list[str] | None:
    names = [] if value is None else value
    if not isinstance(names, list) or not all(name in MODIFIERS for name in names):
        return None
    return sorted(set(names))


def _strings(value: Value) -> list[str] | None:
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list) else None


MODIFIERS = ("Alt", "Control", "ControlOrMeta", "Meta", "Shift")

_CHECKS: dict[str, tuple[str, Any]] = {
    "bid": ("the id of an element, as '12'", _bid),
    "text": ("a string", _text),
    "pixels": (f"a number up to {MAX_PIXELS}", _number(MAX_PIXELS)),
    "wait": (f"milliseconds, at most {MAX_WAIT_MS}", _wait),
    "index": ("the number of a tab", _index),
    "button": ("'left', 'middle' or 'right'", _one_of("left", "middle", "right")),
    "modifiers": (f"a list of {', '.join(MODIFIERS)}", _modifiers),
    "strings": ("a string or a list of strings", _strings),
}

_BID = Parameter("bid", "bid")
_BUTTON = Parameter("button", "button", "left")
_MODIFIERS = Parameter("modifiers", "modifiers", [])
_X, _Y = Parameter("x", "pixels"), Parameter("y", "pixels")
_URL, _TEXT = Parameter("url", "text"), Parameter("text", "text")
_KEY = Parameter("key", "text")

KINDS: dict[str, ActionKind] = {
    kind.name: kind
    for kind in (
        ActionKind(
            "noop", (Parameter("wait_ms", "wait", 1000.0),), "let the page's time go on, no more"
        ),
        ActionKind("goto", (_URL,), "open an address in this tab"),
        ActionKind("go_back", (), "to the previous page of this tab"),
        ActionKind("go_forward", (), "to the next page of this tab, after go_back"),
        ActionKind("new_tab", (), "open an empty tab and go to it"),
        ActionKind("tab_focus", (Parameter("index", "index"),), "go to a tab, counted from 0"),
        ActionKind("tab_close", (), "close this tab"),
        ActionKind("click", (_BID, _BUTTON, _MODIFIERS), "click an element"),
        ActionKind("dblclick", (_BID, _BUTTON, _MODIFIERS), "click it twice"),
        ActionKind("hover", (_BID,), "move the mouse over it"),
        ActionKind("focus", (_BID,), "give it the keyboard"),
        ActionKind("fill", (_BID, Parameter("value", "text")), "replace the text of a field"),
        ActionKind("clear", (_BID,), "empty a field"),
        ActionKind("check", (_BID,), "tick a checkbox or a radio button"),
        ActionKind("uncheck", (_BID,), "untick a checkbox"),
        ActionKind(
            "select_option",
            (_BID, Parameter("options", "strings")),
            "choose options of a <select>, by value or label",
        ),
        ActionKind(
            "press",
            (_BID, _KEY),
            "press a key on an element, as press('12', 'Control+a'); with one argument, the key",
        ),
        ActionKind(
            "upload_file",
            (_BID, Parameter("name", "text"), Parameter("content", "text", "")),
            "give a file of this name and content to a file field",
        ),
        ActionKind(
            "drag_and_drop",
            (Parameter("from_bid", "bid"), Parameter("to_bid", "bid")),
            "drag one element onto another",
        ),
        ActionKind(
            "scroll",
            (Parameter("delta_x", "pixels"), Parameter("delta_y", "pixels")),
            "scroll by pixels, at the mouse",
        ),
        ActionKind("mouse_move", (_X, _Y), "move the mouse"),
        ActionKind("mouse_click", (_X, _Y, _BUTTON), "click at a place"),
        ActionKind("mouse_dblclick", (_X, _Y, _BUTTON), "click twice at a place"),
        ActionKind("mouse_down", (_X, _Y, _BUTTON), "press a mouse button and hold it"),
        ActionKind("mouse_up", (_X, _Y, _BUTTON), "let a mouse button go"),
        ActionKind(
            "mouse_drag_and_drop",
            tuple(Parameter(name, "pixels") for name in ("from_x", "from_y", "to_x", "to_y")),
            "drag from one place to another",
        ),
        ActionKind("keyboard_press", (_KEY,), "press a key or a combination, as 'Control+a'"),
        ActionKind("keyboard_down", (_KEY,), "press a key and hold it"),
        ActionKind("keyboard_up", (_KEY,), "let a key go"),
        ActionKind("keyboard_type", (_TEXT,), "type a text, key by key"),
        ActionKind("keyboard_insert_text", (_TEXT,), "put in a text at once, without keys"),
        ActionKind("send_msg_to_user", (_TEXT,), "say something to the user"),
        ActionKind(
            "report_infeasible",
            (Parameter("reason", "text"),),
            "say that the task cannot be done; ends the episode",
        ),
    )
}
