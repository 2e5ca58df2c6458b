from __future__ import annotations

import json
import math
import warnings

import pytest

from sandboxgym_learners.branching import (
    BiasWarning,
    Coin,
    EntropyTrigger,
    make_rule,
    post_hoc_top,
    warn_biased,
    weighted_quantile,
)
from sandboxgym_learners.config import TreeConfig
from sandboxgym_learners.tree import Segment
from tests.learners.trees import group, step


def tree_with(*entropies: float):
    return group(Segment([step(entropy=entropy) for entropy in entropies]))


def test_nothing_branches_before_the_first_update_has_ended():
    assert not EntropyTrigger().opens(math.inf, depth=3, branches=())


def test_the_first_decision_at_or_above_the_threshold_branches():
    trigger = EntropyTrigger(threshold=0.5)
    assert not trigger.opens(0.49, depth=0, branches=())
    assert trigger.opens(0.5, depth=1, branches=())


def test_the_budget_of_a_path_ends():
    trigger = EntropyTrigger(threshold=0.0, max_branches=2)
    assert trigger.opens(1.0, depth=5, branches=(1,))
    assert not trigger.opens(1.0, depth=9, branches=(1, 5))


def test_branch_points_keep_their_distance():
    trigger = EntropyTrigger(threshold=0.0, max_branches=9, spacing=3)
    assert not trigger.opens(1.0, depth=4, branches=(0, 2))
    assert trigger.opens(1.0, depth=5, branches=(0, 2))


def test_a_member_does_not_branch_again_where_its_group_opened():
    trigger = EntropyTrigger(threshold=0.0, max_branches=9)
    assert not trigger.opens(1.0, depth=4, branches=(4,))


def test_deciding_changes_nothing():
    trigger = EntropyTrigger(threshold=0.3, max_branches=3)
    before = trigger.state_dict()
    for depth in range(10):
        trigger.opens(depth / 10, depth=depth, branches=())
    assert trigger.state_dict() == before


def test_the_threshold_moves_only_when_an_update_ends():
    trigger = EntropyTrigger(quantile=0.5, smoothing=0.75)
    trigger.end_update([tree_with(0.1, 0.2, 0.3), tree_with(0.4)])
    assert trigger.threshold == 0.2
    trigger.end_update([tree_with(1.0)])
    assert trigger.threshold == pytest.approx(0.75 * 0.2 + 0.25 * 1.0)


def test_an_update_without_decisions_leaves_the_threshold():
    trigger = EntropyTrigger(threshold=0.4)
    trigger.end_update([])
    assert trigger.threshold == 0.4


def test_forks_do_not_multiply_what_follows_a_branch_point():
    forks = [Segment([step(entropy=2.0)]) for _ in range(8)]
    tree = group(Segment([step(entropy=1.0), step(entropy=1.0)], group(*forks)))
    trigger = EntropyTrigger(quantile=0.6)
    trigger.end_update([tree])
    assert trigger.threshold == 1.0


def test_state_goes_through_json_and_back():
    trigger = EntropyTrigger()
    trigger.end_update([tree_with(0.1, 0.7, 0.9)])
    resumed = EntropyTrigger()
    resumed.load_state_dict(json.loads(json.dumps(trigger.state_dict())))
    assert resumed == trigger


def depths(rule, *, length: int = 40) -> list[int]:
    """Where a path forks whose decisions all have the same entropy."""
    branches: list[int] = []
    for depth in range(length):
        if rule.opens(0.5, depth=depth, branches=branches):
            branches.append(depth)
    return branches


def test_a_fixed_threshold_stays_where_it_is():
    trigger = EntropyTrigger(quantile=None, threshold=0.5)
    trigger.end_update([tree_with(3.0)])
    assert trigger.threshold == 0.5
    assert depths(trigger) == [0]


def test_a_certain_coin_forks_at_the_first_decisions():
    assert depths(Coin(max_branches=3)) == [0, 1, 2]
    assert depths(Coin(max_branches=3, spacing=5)) == [0, 5, 10]


def test_coins_fall_as_often_as_they_say_and_anew_in_every_update():
    coin = Coin(max_branches=10**6, probability=0.3)
    first = depths(coin, length=3_000)
    assert 0.27 < len(first) / 3_000 < 0.33
    assert depths(coin, length=3_000) == first, "an update has one coin for each depth"
    coin.end_update([])
    assert depths(coin, length=3_000) != first
    assert depths(Coin(max_branches=10**6, probability=0.3, seed=1), length=3_000) != first


def test_coins_go_on_from_their_state():
    coin, resumed = Coin(9, probability=0.5), Coin(9, probability=0.5)
    coin.end_update([])
    resumed.load_state_dict(json.loads(json.dumps(coin.state_dict())))
    assert depths(resumed) == depths(coin)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("quantile", EntropyTrigger(2, 3, quantile=0.7, smoothing=0.5)),
        ("threshold", EntropyTrigger(2, 3, quantile=None, threshold=0.4)),
        ("coin", Coin(2, 3, probability=0.2, seed=5)),
        ("first", Coin(2, 3, probability=1.0, seed=5)),
    ],
)
def test_a_configuration_names_a_rule(name, rule):
    tree = TreeConfig(
        rule=name,
        max_branches=2,
        spacing=3,
        quantile=0.7,
        smoothing=0.5,
        threshold=0.4,
        probability=0.2,
    )
    assert make_rule(tree, seed=5) == rule


@pytest.mark.parametrize(
    ("quantile", "expected"), [(0.0, 1.0), (0.25, 1.0), (0.26, 2.0), (0.5, 2.0), (1.0, 3.0)]
)
def test_weighted_quantile_is_the_least_value_that_holds_the_weight(quantile, expected):
    assert weighted_quantile([3.0, 1.0, 2.0], [2.0, 1.0, 1.0], quantile) == expected


@pytest.mark.parametrize(
    "wrong", [{"max_branches": -1}, {"spacing": 0}, {"quantile": 1.1}, {"smoothing": 1.0}]
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        EntropyTrigger(**wrong)


def test_an_impossible_coin_is_refused():
    with pytest.raises(ValueError, match="probability"):
        Coin(probability=1.5)


def test_post_hoc_top_takes_the_highest_and_says_once_that_it_is_biased():
    warn_biased.cache_clear()
    entropies = [0.1, 0.9, 0.8, 0.3, 0.7]
    with pytest.warns(BiasWarning, match="EntropyTrigger"):
        assert post_hoc_top(entropies, max_branches=2) == [1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert post_hoc_top(entropies, max_branches=2, spacing=2) == [1, 4]
        assert post_hoc_top([0.5], max_branches=3) == [0]
