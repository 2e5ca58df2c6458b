from __future__ import annotations

import dataclasses

import pytest

from sandboxgym.sandboxes.webshop.fuzz import token_set_ratio
from sandboxgym.sandboxes.webshop.nouns import GivenNouns, Nouns
from sandboxgym.sandboxes.webshop.reward import reward
from tests.sandboxes.webshop.small_shop import BOOTS, GOAL, LAMP, LOAFERS, SHELF, EveryWord

ALL = {"size": "8", "color": "red"}


def judged(product=LOAFERS, goal=GOAL, price=20.0, chosen=ALL, nouns=None):
    return reward(product, goal, price, chosen, nouns or Nouns(EveryWord()))


def test_what_was_asked_for_earns_all():
    result = judged()
    assert result.total == 1.0
    assert (result.r_type, result.r_att, result.r_option, result.r_price) == (1.0, 1.0, 1.0, True)


def test_each_part_that_is_missing_costs_its_share():
    assert judged(chosen={"size": "8"}).total == 4 / 5
    assert judged(price=40.01).total == 4 / 5
    assert judged(dataclasses.replace(LOAFERS, attributes=("rubber sole",))).total == 4 / 5
    assert judged(price=40.0).total == 1.0


def test_attributes_may_stand_in_title_features_or_description():
    bare = dataclasses.replace(LOAFERS, attributes=("DUMMY_ATTR",))
    for place in ("title", "description"):
        worded = dataclasses.replace(bare, **{place: f"{LOAFERS.title}, HAND MADE"})
        assert judged(worded).r_att == 1.0  # "Rubber sole" is a feature
    split = dataclasses.replace(bare, features=("rubber", "sole hand", "made"))
    assert judged(split).r_att == 1.0  # across features that are joined
    assert judged(bare).r_att == 0.5


@pytest.mark.parametrize(
    ("has", "wanted", "score", "hit"),
    [
        ("qabcdefghijk", "zabcdefghijklm", 85, 0.0),
        ("qabcdefghijkl", "zabcdefghijklmn", 86, 1.0),
    ],
)
def test_alike_is_more_than_85_of_100(has, wanted, score, hit):
    assert token_set_ratio(has, wanted) == score
    goal = dataclasses.replace(GOAL, attributes=(wanted,))
    assert judged(dataclasses.replace(LOAFERS, attributes=(has,)), goal).r_att == hit


def test_colours_are_compared_by_their_names():
    goal = dataclasses.replace(GOAL, options=("wine red",))
    assert judged(goal=goal, chosen={"color": "red apple"}).r_option == 1.0  # both are "red"
    assert judged(goal=goal, chosen={"color": "blue"}).r_option == 0.0


def test_a_pair_has_a_colour_only_as_a_whole_value():
    shade = dataclasses.replace(GOAL, options={"color": "red"})
    assert judged(goal=shade, chosen={"color": "dark red"}).r_option == 0.0  # "dark" is first
    named = dataclasses.replace(GOAL, options={"color": "dark red"})
    assert judged(goal=named, chosen={"color": "dark red"}).r_option == 1.0  # words of the pair


def test_no_options_asked_for():
    result = judged(goal=dataclasses.replace(GOAL, options={}), chosen={})
    assert result.r_option is None
    assert result.total == 1.0


@pytest.mark.parametrize(
    ("query", "category", "title", "r_type"),
    [
        ("shoes", LAMP.category, "red rain boots", 1.0),
        ("lamps", f"Clothing {SHELF} Men {SHELF} Hats", "red rain boots", 1.0),
        ("lamps", f"Clothing {SHELF} Women", "red rain boots", 1.0),  # by a third of the title
        ("lamps", LAMP.category, "green rain boots", 0.0),
        ("shoes", LOAFERS.category, "green rain boots", 0.0),
    ],
)
def test_the_kind_of_product_scales_the_rest(query, category, title, r_type):
    other = dataclasses.replace(LOAFERS, query=query, category=category, title=title)
    result = judged(other)
    assert result.r_type == r_type
    assert result.total == (result.r_att * 2 + 2 + 1) / 5 * r_type


def test_few_common_nouns_scale_it_down():
    wanted = [f"n{i}" for i in range(20)]
    for common, r_type in ((0, 0.0), (1, 0.1), (2, 0.5), (4, 0.5), (5, 1.0)):
        nouns = Nouns(GivenNouns("given", {GOAL.title: wanted, "other": wanted[:common]}))
        other = dataclasses.replace(LAMP, title="other")
        assert judged(other, nouns=nouns).r_type == r_type


@pytest.mark.parametrize(
    ("category", "r_type"),
    [
        (f"Clothing {SHELF} Women {SHELF} Hats", 0.5),
        (f"Clothing {SHELF} Women {SHELF}  Shoes ", 1.0),
        ("Clothing Men Shoes", 0.5),
        ("", 0.5),
    ],
)
def test_two_names_of_the_path_make_it_the_same_category(category, r_type):
    nouns = Nouns(GivenNouns("given", {GOAL.title: list("abcde"), "other": ["a"]}))
    other = dataclasses.replace(LAMP, title="other", category=category)
    assert judged(other, nouns=nouns).r_type == r_type


def test_repeated_nouns_of_the_goal_count_each():
    nouns = Nouns(GivenNouns("given", {GOAL.title: ["shoe", "shoe"], "other": ["shoe"]}))
    assert judged(dataclasses.replace(LAMP, title="other"), nouns=nouns).title_score == 0.5


def test_a_title_without_nouns_is_neither_good_nor_bad():
    nouns = Nouns(GivenNouns("given", {GOAL.title: [], BOOTS.title: ["boots"]}))
    result = judged(BOOTS, nouns=nouns)
    assert (result.title_score, result.r_type) == (0.2, 1.0)
    assert judged(dataclasses.replace(LAMP, title=BOOTS.title), nouns=nouns).r_type == 0.5


def test_nouns_are_asked_for_once_a_title():
    asked = []

    class Asked(EveryWord):
        def nouns(self, title):
            asked.append(title)
            return super().nouns(title)

    nouns = Nouns(Asked())
    assert nouns.of("a b a") == nouns.of("a b a") == ("a", "b", "a")
    assert asked == ["a b a"]
