from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.text.expressions import Entity, as_text, compile_expression
from sandboxgym.sandboxes.text.twl2 import (
    Each,
    Listing,
    Placeholder,
    Print,
    Question,
    Symbol,
    Words,
    parse_grammar,
    parse_query,
    parse_template,
)
from tests.sandboxes.text import workshop

X = Question("p", (Placeholder("x", "t"),))


def template(text: str):
    return [part for part in parse_template(text, "test") if part != Words("")]


# --- Templates; the expectations were tried out on the stock parser ---


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("You look.", [Words("You look.")]),
        ("#a b(c)#!", [Symbol("a b(c)"), Words("!")]),
        ("{x.name} {x}", [Each(Print("x.name"), None), Words(" "), Each(Print("x"), None)]),
        ("{x + 'y' | p(x:t)}", [Each(Print("x + 'y' "), (X,))]),
        ("[{#s# | p(x:t)}].", [Listing(Each(Symbol("s"), (X,))), Words(".")]),
        ("{x}\n\n#a#", [Each(Print("x"), None), Words("\n\n"), Symbol("a")]),
        # blanks at the start vanish, and tabs at the start of every part
        ("  \n a", [Words("a")]),
        (" (open)", [Words("(open)")]),
        (", ", [Words(", ")]),
        ("#a#\t b", [Symbol("a"), Words(" b")]),
        ("a\tb", [Words("a\tb")]),
        ("//comment\nfoo", [Words("foo")]),
        # quotes around words are dropped
        ('say "hi" now', [Words("say "), Words("hi"), Words(" now")]),
        # what fits nothing ends the template
        ("a;b", [Words("a")]),
        ("a < b", [Words("a ")]),
        ('say "hi', [Words("say ")]),
        (
            "{x} (in {x})}",
            [Each(Print("x"), None), Words(" (in "), Each(Print("x"), None), Words(")")],
        ),
        ("a [x] b", [Words("a ")]),
        ("a#b", [Words("a")]),
        ("{a|}", []),
        ("[ {x} ]", []),
    ],
)
def test_a_template_is_read_as_the_stock_engine_reads_it(text, parts):
    assert template(text) == parts


# --- Queries ---


def test_a_query_is_a_conjunction():
    assert parse_query("p(x:t) & !q(y', z:u)&r()", "test") == (
        X,
        Question("not_q", (Placeholder("y'", "y"), Placeholder("z", "u"))),
        Question("r", ()),
    )


@pytest.mark.parametrize(
    "text",
    ["p", "p(", "p(x:)", "p(x:t) q(x:t)", "p(x:t) | q(x:t)", "p(x:t) &", "p(x:t) & q(x)", "p(,)"],
)
def test_a_bad_query_is_refused(text):
    with pytest.raises(GameFileError, match="of test"):
        parse_query(text, "test")


def test_a_query_has_a_limit():
    with pytest.raises(GameFileError, match="more than 20 predicates"):
        parse_query(" & ".join(["p(x:t)"] * 21), "test")


# --- Expressions ---

APPLE = Entity("apple_bar_1", "fruit", "apple 1")


def value_of(expression: str) -> str:
    return as_text(compile_expression(expression, ["o"].index)([APPLE]))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("o", "apple 1"),
        (" o.indefinite + ' ' + o.name ", "a apple 1"),
        ("o.definite", "the"),
        ("o.id", "apple_bar_1"),
        ("o.type", "fruit"),
        ("o.noun", "None"),
        ("o.noun or o.name", "apple 1"),
        ("o.name and o.type", "fruit"),
        ("not o.noun", "True"),
        ("not not o.noun", "False"),
        ("o == o", "True"),
        ("o.name != 'apple 1'", "False"),
        ("('a' + \"b\") + 'it\\'s'", "abit's"),
        ("o.name == 'pear' and 'yes' or 'no'", "no"),
    ],
)
def test_expressions(expression, value):
    assert value_of(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "().__class__",
        "o.__class__",
        "o.name.upper()",
        "o.name.upper",
        "open('/etc/passwd')",
        "[x for x in o]",
        "lambda: 1",
        "1",
        "'a' * 9",
        "o.name[0]",
        "f'{o}'",
        "o.name +",
        "o o",
        "and",
        "(o",
        "o)",
        "",
        "   ",
        "'\\x41'",
        "'open",
        "o == o == o",
        "(" * 21 + "o" + ")" * 21,
        "(" * 100_000,
        "not " * 100_000 + "o",
        "o + " * 100_000 + "o",
    ],
)
def test_everything_else_is_refused_when_the_grammar_is_read(expression):
    with pytest.raises(GameFileError, match="expression"):
        compile_expression(expression, lambda name: 0)


def test_only_strings_are_added():
    with pytest.raises(GameFileError, match="no string"):
        value_of("o.noun + 'x'")


# --- Documents ---


def test_a_document_has_actions_and_symbols():
    grammar = parse_grammar(workshop.GRAMMAR)
    assert grammar.actions["take"].command == (
        Words("take "),
        Each(Print("i"), None),
        Words(" from "),
        Each(Print("b"), None),
    )
    assert {"intro", "unused"} <= grammar.symbols.keys()
    assert grammar.symbols["item"][0].condition == parse_query("lit(t:item)", "test")


def test_a_later_symbol_replaces_an_earlier_one():
    grammar = parse_grammar(
        'grammar :: """{"a": [{"rhs": "one"}]}"""; grammar :: """{"a": [{"rhs": "two"}]}""";'
    )
    assert grammar.symbols["a"][0].template == (Words("two"),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello", "line 1 of the grammar: expected 'action'"),
        ("\n\naction {", "line 3 of the grammar: expected the name"),
        ("action a { template :: ", "expected a string"),
        ('action a { template :: "x"', "expected ';'"),
        ('action a { template :: "x"; }', "has no feedback"),
        ("action a { taste :: 1; }", "unknown part 'taste'"),
        ('grammar :: """{"a": [}""";', "no valid JSON"),
        ('grammar :: """[]""";', "must be a JSON object"),
        ('grammar :: """' + "[" * 100_000 + '""";', "no valid JSON"),
        ('grammar :: """{"a": []}""";', "must have a list of alternatives"),
        ('grammar :: """{"a": {}}""";', "must have a list of alternatives"),
        ('grammar :: """{"a": [1]}""";', "has no text 'rhs'"),
        ('grammar :: """{"a": [{"rhs": 1}]}""";', "has no text 'rhs'"),
        ('grammar :: """{"a": [{"rhs": "", "condition": 1}]}""";', "is no text"),
        ('grammar :: """{"a": [{"rhs": "", "condition": "p"}]}""";', "symbol 'a' is not under"),
        ('grammar :: """{"a": [{"rhs": "{__import__(1)}"}]}""";', "not understood"),
        ('grammar :: """{"a": [{"rhs": "\\ud800"}]}""";', "half a character"),
    ],
)
def test_a_bad_document_is_refused(text, reason):
    with pytest.raises(GameFileError, match=reason):
        parse_grammar(text)


PIECES = [
    *"{}[]#|;:\"'&()<>!.+",
    " ",
    "\n",
    "\t",
    "//",
    '"""',
    "::",
    "action",
    "grammar",
    "template",
]
PIECES += ["feedback", "x", "x.name", "p(x:t)", "#a#", "{x}", "or", "not", "\\", "rhs", "condition"]
scraps = st.text() | st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@given(scraps)
def test_any_text_is_a_template_or_a_game_file_error(text):
    with suppress(GameFileError):
        parse_template(text, "test")


@given(scraps)
def test_any_text_is_an_expression_or_a_game_file_error(text):
    with suppress(GameFileError):
        as_text(compile_expression(text, lambda name: 0)([APPLE]))


@given(st.integers(0, len(workshop.GRAMMAR)), st.integers(0, 40), scraps)
def test_a_damaged_document_is_a_document_or_a_game_file_error(start, length, scrap):
    for text in (scrap, workshop.GRAMMAR[:start] + scrap + workshop.GRAMMAR[start + length :]):
        with suppress(GameFileError):
            parse_grammar(text)
