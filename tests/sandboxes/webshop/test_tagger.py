"""Which words of a title are nouns."""

import importlib.util

import pytest

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.sandboxes.webshop import tagger
from sandboxgym.sandboxes.webshop.nouns import NounTagger

needs_spacy = pytest.mark.skipif(
    importlib.util.find_spec("spacy") is None, reason="spaCy is not installed"
)


def nouns(title):
    return tagger.BuiltinTagger().nouns(title)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Oak Table, 48-Inch", "Oak Table , 48 - Inch"),
        ("Table (Color: Black)", "Table ( Color : Black )"),
        ("V-Neck T-Shirt", "V - Neck T - Shirt"),
        ("Women's Coat", "Women 's Coat"),
        ('60" Wide, 5ft x 10.5 oz.', '60 " Wide , 5 ft x 10.5 oz .'),
        ("Salt/Pepper, USB&HDMI", "Salt / Pepper , USB&HDMI"),
        ("100% Cotton: 2GB+32GB", "100 % Cotton : 2GB+32 GB"),
        ("J. Doe and Dr. Roe", "J. Doe and Dr. Roe"),
        ("lamp.Made in wood,metal", "lamp . Made in wood , metal"),
        ("$5 off [2 Pack]", "$ 5 off [ 2 Pack ]"),
        ("- - ...", "- - ..."),
        ("", ""),
    ],
)
def test_titles_are_cut_into_tokens(title, expected):
    assert tagger.tokens(title) == expected.split()


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Larkmoor Oak Console Table", "larkmoor oak console table"),
        ("Table with Drawers for the Hall", "table drawers hall"),
        ("4 Chairs (2 Pack), 12.5 x 30", "chairs pack"),
        ("lamp that is suitable for reading", "lamp"),
        ("Shampoo, 12 fl oz", "shampoo fl oz"),
        ("Chairs chairs CHAIRS", "chairs chairs chairs"),
        ("", ""),
        ("12 34 !!", ""),
    ],
)
def test_nouns_are_words_that_no_rule_excludes(title, expected):
    assert nouns(title) == expected.split()


def test_the_more_particular_rule_counts():
    rules = tagger.parsed_rules(
        "[other a * *]\nwords = ~ing oak\n[noun a * A]\nwords = oak\n[other , * *]\nwords = ~"
    )

    def found(text):
        words = text.split()
        return [word for at, word in enumerate(words) if tagger.is_noun(rules, words, at)]

    assert found("oak Table") == ["oak", "Table"]
    assert found("oak table") == ["table"]
    assert found("reading Reading table , -") == ["Reading", "table"]


def test_a_pattern_sees_how_the_neighbours_are_written():
    assert tagger.patterns(["12", "oz", ")"], 1)[-1] == "oz a 0 )"
    assert tagger.patterns(["Oak"], 0)[-1] == "oak A ^ $"
    shapes = {"48": "0", "5ft": "0a", "ps5": "a0", ",": ",", "[": "(", "of": "of", "USB": "AA"}
    assert {token: tagger.shape_of(token) for token in shapes} == shapes


def test_the_shipped_rules_name_ordinary_words_only():
    words = {pattern.split()[0] for pattern in tagger._rules()}
    assert 300 < len(words) < 1000
    assert not [word for word in words if len(word) > 20]


def test_taggers_are_found_by_name():
    builtin = tagger.tagger("builtin")
    assert isinstance(builtin, NounTagger)
    assert builtin.id == tagger.BUILTIN
    with pytest.raises(ValueError, match="no tagger 'brown'"):
        tagger.tagger("brown")


@pytest.mark.skipif(importlib.util.find_spec("spacy") is not None, reason="spaCy is installed")
def test_without_spacy_the_message_says_what_to_install():
    with pytest.raises(MissingDependencyError, match=r"sandboxgym\[spacy\]"):
        tagger.tagger("spacy")


@needs_spacy
def test_spacy_tags_titles():
    spacy = tagger.tagger("spacy")
    assert isinstance(spacy, NounTagger)
    assert spacy.id.startswith("spacy/en_core_web_sm")
    assert spacy.nouns("Oak Table with two Drawers") == ["oak", "table", "drawers"]


@needs_spacy
def test_an_unknown_model_of_spacy_is_named():
    with pytest.raises(MissingDependencyError, match="no_such_model"):
        tagger.tagger("spacy:no_such_model")
