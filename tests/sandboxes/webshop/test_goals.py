from __future__ import annotations

import dataclasses

import pytest

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.webshop import goals as goals_module
from sandboxgym.sandboxes.webshop.catalogue import ListedCatalogue
from sandboxgym.sandboxes.webshop.goals import Goals, part, shuffled
from sandboxgym.sandboxes.webshop.prices import NO_LIMIT, PriceList
from tests.sandboxes.webshop.small_shop import BOOTS, CATALOGUE, LAMP, LOAFERS, product


def test_synthetic_goals_are_all_combinations_of_options():
    goals = Goals(CATALOGUE, "synthetic", 0)
    loafers = [goal for goal in goals if goal.asin == "LOAFERS"]
    assert len(goals) == 5
    assert {tuple(g.options.items()) for g in loafers} == {
        (("color", color), ("size", size))
        for color in ("red", "dark blue")
        for size in ("8", "8.5")
    }
    limit = loafers[0].price_limit
    assert {g.price_limit for g in loafers} == {limit}
    texts = {goal.instruction for goal in loafers}
    ending = f", and price lower than {limit:.2f} dollars"
    assert f"Find me hand made shoes with color: dark blue, and size: 8.5{ending}" in texts
    [boots] = [goal for goal in goals if goal.asin == "BOOTS"]
    assert boots.instruction == f"Find me, and price lower than {boots.price_limit:.2f} dollars"


def test_combinations_come_with_the_last_name_changing_fastest():
    product = dataclasses.replace(LOAFERS, options={"b": ("1", "2"), "a": ("x", "y", "z")})
    made = [goals_module.goal_of(product, "synthetic", i, PriceList(0)).options for i in range(6)]
    assert [tuple(options.values()) for options in made] == [
        ("x", "1"), ("x", "2"), ("y", "1"), ("y", "2"), ("z", "1"), ("z", "2")
    ]  # fmt: skip


def test_human_goals_are_wishes_that_ask_for_something():
    [goal] = Goals(CATALOGUE, "human", 0)
    assert goal.instruction.startswith("i want red loafers, and price lower than ")
    assert goal.options == ("red",)
    assert goal.attributes == ("rubber sole",)


def test_a_seed_gives_the_same_goals_whoever_asks_and_whatever_else_is_sold():
    goals = list(Goals(CATALOGUE, "synthetic", 7))
    assert list(Goals(CATALOGUE, "synthetic", 7)) == goals
    fewer = Goals(ListedCatalogue([LAMP, LOAFERS]), "synthetic", 7)
    assert sorted(g.instruction for g in fewer) == sorted(
        g.instruction for g in goals if g.asin == "LOAFERS"
    )


def test_seeds_give_other_orders_prices_and_limits():
    many = ListedCatalogue(dataclasses.replace(LOAFERS, asin=f"L{i}") for i in range(20))
    one, other = (Goals(many, "synthetic", seed) for seed in (1, 2))
    assert [g.asin for g in one] != [g.asin for g in other]
    assert {g.asin: g.price_limit for g in one} != {g.asin: g.price_limit for g in other}
    assert PriceList(1).price(LOAFERS) != PriceList(2).price(LOAFERS)


def test_what_is_drawn_stays_the_same_in_later_versions():
    """Else a goal of that index is another task, and results cannot be compared."""
    assert shuffled(12, 233).tolist() == [5, 9, 0, 1, 4, 7, 6, 3, 8, 2, 11, 10]
    prices = PriceList(233)
    assert prices.price(LOAFERS) == 20.859060331367026
    assert [prices.limit(LOAFERS, number) for number in range(4)] == [60.0, 50.0, 60.0, 50.0]


def test_prices_are_within_their_range_and_limits_above_the_price():
    for number in range(200):
        cheap = product(f"P{number}", "", prices=(15.0, 30.0))
        prices = PriceList(number)
        price, limit = prices.price(cheap), prices.limit(cheap)
        assert 15 <= price <= 30
        assert price == prices.price(cheap)
        assert limit in range(10 * int(price // 10) + 20, 10 * int(price // 10) + 50, 10)
    assert PriceList(0).price(BOOTS) == 20.0
    assert PriceList(0).limit(BOOTS) in (40.0, 50.0, 60.0)


@pytest.mark.parametrize(("price", "limited"), [(969.0, True), (980.0, False), (2000.0, False)])
def test_there_is_no_limit_above_a_thousand(price, limited):
    dear = product(
        "DEAR", "", prices=(price,), instruction="Find me", instruction_attributes=("a",)
    )
    [goal] = Goals(ListedCatalogue([dear]), "synthetic", 0)
    assert (goal.price_limit != NO_LIMIT) == limited
    assert ("price lower than" in goal.instruction) == limited


def test_limits_of_several_wishes_are_drawn_each():
    limits = {PriceList(0).limit(BOOTS, number) for number in range(30)}
    assert limits == {40.0, 50.0, 60.0}


def test_splits_are_those_of_the_field():
    assert [part(name, 6910) for name in ("test", "eval", "train", "all")] == [
        range(500), range(500, 1500), range(1500, 6910), range(6910)
    ]  # fmt: skip


def test_few_goals_are_shared_out_in_the_same_proportions():
    assert [part(name, 13) for name in ("test", "eval", "train")] == [
        range(2), range(2, 6), range(6, 13)
    ]  # fmt: skip


@pytest.mark.parametrize("total", [0, 1, 5, 13, 100, 2999, 3000, 12_087])
def test_splits_share_no_goal_and_leave_none_out(total):
    parts = [part(name, total) for name in ("test", "eval", "train")]
    assert [i for p in parts for i in p] == list(part("all", total))


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="test, eval, train, all"):
        part("dev", 10)


def test_more_goals_than_memory_holds_are_refused():
    values = tuple(map(str, range(100)))
    for names in ("abcde", "abcdefghijklmnop"):
        huge = dataclasses.replace(LOAFERS, options=dict.fromkeys(names, values))
        with pytest.raises(GameFileError, match="num_products"):
            Goals(ListedCatalogue([huge]), "synthetic", 0)
