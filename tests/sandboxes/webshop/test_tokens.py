from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxgym.sandboxes.webshop.tokens import MAX_TOKEN, STOP_WORDS, Analyser, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't stop", ["don't", "stop"]),
        ("'quoted'", ["quoted"]),
        ("x-large 3/4 a+b", ["x", "large", "3", "4", "a", "b"]),
        ("3.5 1,000 1.a a.1 a.b", ["3.5", "1,000", "1", "a", "a", "1", "a.b"]),
        ("a,b a:b 1:2", ["a", "b", "a:b", "1", "2"]),
        ("12x16inch 8k4g", ["12x16inch", "8k4g"]),
        ("foo_bar __init__ _ 1_2", ["foo_bar", "__init__", "1_2"]),
        ("women\u2019s e\u0301te\u0301", ["women\u2019s", "e\u0301te\u0301"]),
        ("soft\u00adhyphen zero\u200bwidth", ["soft\u00adhyphen", "zero", "width"]),
        ("m\u00b2 5\u00bd 5\u00ba", ["m", "5", "5\u00ba"]),
        ("日本の かな カタカナ", ["日", "本", "の", "か", "な", "カタカナ"]),
        ("한국어 ภาษาไทย", ["한국어", "ภาษาไทย"]),
        ("צה\"ל ג'", ['צה"ל', "ג"]),
        ("I\u2764\ufe0fit", ["I", "\u2764\ufe0f", "it"]),
        ("\U0001f338\U0001f338", ["\U0001f338", "\U0001f338"]),
        ("\U0001f468\u200d\U0001f4bc!", ["\U0001f468\u200d\U0001f4bc"]),
        ("\U0001f44d\U0001f3fd", ["\U0001f44d\U0001f3fd"]),
        (
            "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7",
            ["\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"],
        ),
        ("#\ufe0f\u20e3 1\u20e3 # *", ["#\ufe0f\u20e3", "1\u20e3"]),
        ("brand\u2122 \u00ae \u221a \u25cf \u2605", ["brand", "\u2122", "\u00ae", "\u2605"]),
        ("\uff12\uff13 \u0664", ["\uff12\uff13", "\u0664"]),
        ("", []),
        (" \t\n.,;!?", []),
    ],
)
def test_words(text, expected):
    assert list(words(text)) == expected


def test_long_words_are_cut():
    assert [len(w) for w in words("a" * (2 * MAX_TOKEN + 3))] == [MAX_TOKEN, MAX_TOKEN, 3]


@settings(deadline=None)
@given(st.text(max_size=200))
def test_words_are_pieces_of_the_text_in_order(text):
    at = 0
    for word in words(text):
        at = text.index(word, at) + len(word)


# Each would take hours if time grew with the square of the length or worse.
@pytest.mark.parametrize("unit", ["_", "\u200d", "a_", "1,", "\u2764\u200d", "_\u0301", "a'"])
def test_hostile_texts_take_linear_time(unit):
    assert sum(1 for _ in words(unit * 30_000)) <= 60_000


def test_terms_are_stemmed_without_possessives_and_stop_words():
    text = "the women's shoes' and brand\u2019s THE Men\uff07S it's"
    assert Analyser().terms(text) == ["women", "shoe", "brand", "men"]


def test_there_are_as_many_stop_words_as_lucene_has():
    assert len(STOP_WORDS) == 33
    assert Analyser().terms(" ".join(STOP_WORDS)) == []
