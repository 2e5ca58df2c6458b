from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxgym.sandboxes.webshop.fuzz import token_set_ratio

rapidfuzz = pytest.importorskip("rapidfuzz")
PIECES = ["red", "dark blue", "8.5", "x-large", "it's", "ba", "ab", "_x", "é", "\u2019s", "锅"]
texts = st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PIECES)).map(" ".join))
values = st.one_of(texts, st.tuples(texts, texts))


def cleaned(value):
    text = "".join(c for c in str(value) if not 128 <= ord(c) < 256)
    return re.sub(r"\W", " ", text).lower()


@settings(deadline=None)
@given(values, values)
def test_it_is_what_rapidfuzz_says(left, right):
    expected = rapidfuzz.fuzz.token_set_ratio(cleaned(left), cleaned(right))
    assert token_set_ratio(left, right) == round(expected)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("machine wash", "machine washable", 86),
        ("rubber sole", "rubber outsole", 88),
        ("8", ("size", "8"), 100),
        ("anti slip", "slip anti shoes", 100),
        ("", "", 0),
        ("!?", "!?", 0),
        ("é", "e", 0),
    ],
)
def test_known_scores(left, right, expected):
    assert token_set_ratio(left, right) == expected
