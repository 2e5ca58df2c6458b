from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxgym.sandboxes.webshop import index as index_module
from sandboxgym.sandboxes.webshop import search as search_module
from sandboxgym.sandboxes.webshop.index import IndexBuilder, coarse_length, open_index
from sandboxgym.sandboxes.webshop.search import Search, published
from sandboxgym.sandboxes.webshop.tokens import Analyser

TEXTS = ["red shoes", "red red hat", "green shoes for a walk", "", "blue", "red shoes"]
ASINS = ["B5", "B1", "B4", "B3", "B2", "B0"]


def build(texts, asins=None, folder=None):
    builder = IndexBuilder()
    for text in texts:
        builder.add(text)
    return builder.finish(asins or [f"A{i}" for i in range(len(texts))], folder)


def found(search, text, most=50):
    return search.find(text, most)[0].tolist()


def test_the_best_come_first_and_equals_by_asin():
    search = Search(build(TEXTS, ASINS))
    assert found(search, "red shoes") == [5, 0, 1, 2]
    assert found(search, "shoe", most=1) == [5]
    assert found(search, "RED") == [1, 5, 0]


def test_words_that_are_nowhere_find_nothing():
    search = Search(build(TEXTS))
    assert found(search, "") == found(search, "the") == found(search, "sofa") == []


def test_a_shop_without_a_word_finds_nothing():
    assert found(Search(build(["", "the"])), "red") == []
    assert found(Search(build([])), "red") == []


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdefg"), max_size=60), min_size=1, max_size=8))
def test_scores_are_bm25(documents):
    texts = [" ".join(f"q{letter}" for letter in document) for document in documents]
    query = "qa qb qb qc"
    positions, scores = Search(build(texts)).find(query)
    expected = slow_scores(texts, query)
    assert {int(p) for p in positions} == {i for i, score in enumerate(expected) if score > 0}
    for position, score in zip(positions, scores, strict=True):
        assert score == pytest.approx(expected[position], rel=1e-5)


@settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12), min_size=1, max_size=40),
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8),
    st.integers(1, 5),
    st.integers(0, 20),
)
def test_the_way_around_long_lists_leads_to_the_same(documents, query, most, long):
    search = Search(build([" ".join(f"q{letter}" for letter in d) for d in documents]))
    text = " ".join(f"q{letter}" for letter in query)
    expected = search.find(text, most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_module, "LONG", long)
        patch.setattr(search_module, "_LOOKING_UP", 0.01)
        found = search.find(text, most)
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])


def test_the_way_around_is_taken(monkeypatch):
    search = Search(build(["rare common"] * 3 + ["common"] * 100))
    monkeypatch.setattr(search_module, "LONG", 50)
    monkeypatch.setattr(search_module._Term, "add_to_all", refuse_long(50))
    assert found(search, "rare common", most=3) == [0, 1, 2]


def refuse_long(limit):
    whole = search_module._Term.add_to_all

    def add_to_all(term, totals):
        assert len(term.products) <= limit, "a list was gone through that need not be"
        whole(term, totals)

    return add_to_all


def slow_scores(texts, query):
    """BM25 as in a textbook, without the factor (k1 + 1)."""
    documents = [Analyser().terms(text) for text in texts]
    full = [d for d in documents if d]
    average = sum(map(len, full)) / max(len(full), 1)
    scores = []
    for document in documents:
        score = 0.0
        for term, times in Counter(Analyser().terms(query)).items():
            having = sum(term in d for d in full)
            idf = math.log(1 + (len(full) - having + 0.5) / (having + 0.5))
            f = document.count(term)
            if f:
                norm = 0.9 * (1 - 0.4 + 0.4 * coarse_length(len(document)) / average)
                score += times * idf * f / (f + norm)
        scores.append(score)
    return scores


def test_lengths_are_as_coarse_as_lucene_s():
    kept = [0, 1, 39, 40, 41, 42, 43, 55, 57, 59, 60, 71, 72, 1000, 100_000]
    assert [coarse_length(n) for n in kept] == [
        0, 1, 39, 40, 40, 42, 42, 54, 56, 56, 60, 68, 72, 984, 98328
    ]  # fmt: skip
    assert len({coarse_length(n) for n in range(2**20)}) < 256


def test_an_index_in_files_is_the_one_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(index_module, "_BLOCK", 2)
    texts = [f"{text} \u2764\ufe0f it\u2019s" for text in TEXTS]
    build(texts, ASINS, tmp_path)
    here, there = Search(build(texts, ASINS)), Search(open_index(tmp_path))
    for query in ("red", "shoes red walk", "\u2764\ufe0f", "blue blue", "nothing"):
        for ours, theirs in zip(here.find(query), there.find(query), strict=True):
            assert np.array_equal(ours, theirs)


def test_blocks_make_no_difference(monkeypatch):
    whole = build(TEXTS)
    monkeypatch.setattr(index_module, "_BLOCK", 1)
    pieces = build(TEXTS)
    assert whole.terms == pieces.terms
    assert np.array_equal(whole.products, pieces.products)
    assert np.array_equal(whole.divisors, pieces.divisors)


def test_published_scores_tell_equals_apart():
    told = published(np.array([2.00004, 2.00003, 2.00002, 1.5], np.float32))
    assert told.tolist() == pytest.approx([2.0, 1.999999, 1.999998, 1.5], abs=1e-7)
    assert (np.diff(told) < 0).all()
