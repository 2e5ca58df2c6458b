import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxgym.sandboxes.browser.actions import KINDS, ActionError, describe, parse


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("click('12')", "click", {"bid": "12", "button": "left", "modifiers": []}),
        ("click(12)", "click", {"bid": "12", "button": "left", "modifiers": []}),
        ("  go_back ( ) ", "go_back", {}),
        ("fill('7', value=\"it's\")", "fill", {"bid": "7", "value": "it's"}),
        (r"fill('7', 'a\'b\n\u00e9\x41')", "fill", {"bid": "7", "value": "a'b\né" + "A"}),
        ("scroll(0, -200.5)", "scroll", {"delta_x": 0.0, "delta_y": -200.5}),
        ("select_option('3', ['a', 'b',])", "select_option", {"bid": "3", "options": ["a", "b"]}),
        ("select_option('3', 'a')", "select_option", {"bid": "3", "options": ["a"]}),
        ("press('Enter')", "keyboard_press", {"key": "Enter"}),
        ("press('4', 'Enter')", "press", {"bid": "4", "key": "Enter"}),
        ("noop()", "noop", {"wait_ms": 1000.0}),
        ("tab_focus(index=1)", "tab_focus", {"index": 1}),
    ],
)
def test_reads(text, name, arguments):
    action = parse(text)
    assert (action.name, dict(action.arguments)) == (name, arguments)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begins with its name"),
        ("click", r"expected '\('"),
        ("click('12'", r"expected ',' or '\)'"),
        ("click('12)", "no closing '"),
        ("click()", "'bid' is missing"),
        ("click('a b')", "should be the id of an element"),
        ("click('1', 'left', [], 4)", "no more than 3"),
        ("click('1', bid='2')", "given twice"),
        ("click('1', colour='2')", "does not exist"),
        ("click('1', button='fourth')", "'left', 'middle' or 'right'"),
        ("click('1'); click('2')", "one action at a time"),
        ("click(f())", "expected a string in quotes"),
        ("__import__('os').system('id')", "something after the closing parenthesis"),
        ("explode()", "there are: noop, goto"),
        ("noop(1e9)", "at most 60000"),
        ("noop(1e999)", "too large"),
        ("noop(-1)", "milliseconds"),
        ("noop(True)", "milliseconds"),
        ("tab_focus(-1)", "number of a tab"),
        ("fill('1', None)", "a string"),
        ("fill(value='1', '2')", "without a name cannot follow"),
        (r"fill('1', '\uzz')", "names no character"),
    ],
)
def test_refuses_with_the_reason(text, reason):
    with pytest.raises(ActionError, match=reason):
        parse(text)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_an_action_or_an_action_error(text):
    with contextlib.suppress(ActionError):
        parse(text)


@settings(deadline=None)
@given(st.text())
def test_quoting_what_python_quotes_gives_the_text_back(value):
    assert parse(f"send_msg_to_user({value!r})")["text"] == value


def test_what_it_prints_it_reads():
    for text in ("click('12', modifiers=['Shift', 'Alt'])", r"fill('1', 'a\\b\'c')", "noop(5)"):
        assert parse(str(parse(text))) == parse(text)


def test_the_description_has_a_line_for_each_action():
    assert [line.split("(")[0] for line in describe().splitlines()] == list(KINDS)
