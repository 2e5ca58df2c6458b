"""Against episodes and rankings that were recorded from the original, with its real products."""

from __future__ import annotations

import numpy as np
import pytest

from sandboxgym.sandboxes.webshop.catalogue import ListedCatalogue
from sandboxgym.sandboxes.webshop.env import WebShopEnv
from sandboxgym.sandboxes.webshop.goals import Goals
from sandboxgym.sandboxes.webshop.index import IndexBuilder
from sandboxgym.sandboxes.webshop.nouns import GivenNouns, Nouns
from sandboxgym.sandboxes.webshop.original import find_files, read_products
from sandboxgym.sandboxes.webshop.search import Search, published
from sandboxgym.sandboxes.webshop.session import Session
from sandboxgym.sandboxes.webshop.shop import Shop
from sandboxgym.sandboxes.webshop.texts import as_text
from tests.sandboxes.webshop.recorded import DrawnPrices, goal_of, read


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "webshop"


@pytest.fixture(scope="module")
def catalogue(folder):
    return ListedCatalogue(read_products(find_files(folder)))


@pytest.fixture(scope="module")
def shop(catalogue):
    return Shop(catalogue)


@pytest.fixture(scope="module")
def nouns(folder, catalogue):
    [by_asin] = read(folder / "title_nouns_sm38.json.gz")
    by_title = {catalogue.product(asin).title: nouns for asin, nouns in by_asin.items()}
    return Nouns(GivenNouns("recorded", by_title))


def test_every_step_of_every_episode_is_the_original_s(folder, shop, nouns):
    episodes = read(folder / "episodes.jsonl.gz")
    assert len(episodes) == 300
    for episode in episodes:
        customer = Session(shop, goal_of(episode["goal"]), DrawnPrices(episode["prices"]), nouns)
        assert as_text(customer.page) == episode["obs0"]
        assert list(customer.page.clickables()) == episode["click0"]
        for step in episode["steps"]:
            customer.act(step["action"])
            assert as_text(customer.page) == step["obs"]
            assert list(customer.page.clickables()) == step["clickables"]
            assert customer.done == step["done"]
            assert (customer.reward.total if customer.reward else 0.0) == step["reward"]
        if customer.reward is not None:
            verbose = episode["verbose"]
            for part in ("r_type", "query_match", "category_match", "title_score", "r_att"):
                assert getattr(customer.reward, part) == verbose[part]
            assert customer.reward.r_option == verbose.get("r_option")
            assert customer.reward.r_price == verbose["r_price"]


def test_the_environment_returns_what_the_original_returned(folder, nouns):
    env = WebShopEnv("all", catalogue=folder, tagger=nouns.tagger)
    for episode in read(folder / "episodes.jsonl.gz")[:40]:
        env.reset(seed=0)
        prices = DrawnPrices(episode["prices"])
        env._session = Session(env._shop, goal_of(episode["goal"]), prices, nouns)
        for step in episode["steps"]:
            observation, reward, terminated, truncated, info = env.step(step["action"])
            assert observation == step["obs"]
            assert info["clickables"] == step["clickables"]
            assert (reward, terminated, truncated) == (step["reward"], step["done"], False)


def test_every_ranking_is_lucene_s(folder, catalogue):
    [rankings] = read(folder / "rank_ref.json.gz")
    assert len(rankings) == 600
    builder = IndexBuilder()
    for product in catalogue:
        builder.add(product.indexed_text)
    search = Search(builder.finish([product.asin for product in catalogue]))
    for query, ranking in rankings.items():
        positions, scores = search.find(query)
        assert [catalogue[i].asin for i in positions] == [asin for asin, _, _ in ranking], query
        expected = np.array([score for _, score, _ in ranking], np.float32)
        assert np.array_equal(published(scores), expected), query


def test_what_is_indexed_is_what_lucene_indexed(folder, catalogue):
    documents = read(folder / "lucene_documents_1k.jsonl.gz")
    assert [d["id"] for d in documents] == [product.asin for product in catalogue]
    for document, product in zip(documents, catalogue, strict=True):
        assert product.indexed_text == document["contents"]
        assert product.price_tag == document["product"]["Price"]


def test_the_goals_are_as_many_and_in_the_same_words(folder, catalogue):
    goals = Goals(catalogue, "synthetic", 233)
    assert len(goals) == 6910
    assert len(Goals(catalogue, "human", 233)) == 13

    def without_limit(text):
        return text.partition(", and price lower than")[0]

    texts = {without_limit(goal.instruction) for goal in goals}
    for episode in read(folder / "episodes.jsonl.gz"):
        assert without_limit(episode["goal"]["instruction_text"]) in texts
