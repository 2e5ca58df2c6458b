import json
from dataclasses import replace

import pytest

from sandboxgym_learners.adaptive import AdaptiveShape
from sandboxgym_learners.algorithms import Shape
from sandboxgym_learners.anova import Components
from sandboxgym_learners.config import AdaptiveConfig
from sandboxgym_learners.efficiency import cost, efficiency

USUAL = Shape(2, 8, 1)


def noise(
    *, between: float, within: float, before: float, after: float, routine: float = 1.0
) -> Components:
    """Components where returns do not depend on actions; a step before has a score of `routine`."""
    return Components(
        between=between,
        within=within,
        prefix_cost=before,
        continuation_cost=after,
        prefix_score=routine * before,
        continuation_score=after,
        prefix_signal=2 * between * routine * before,
        prefix_noise=within * routine * before,
        fork_judged=within * after,
        fork_baseline=within * after,
        episode=2 * (between + within) * (routine * before + after),
    )


LONG_ROUTINE = noise(between=0.01, within=1.0, before=20, after=4, routine=0.1)
NO_ROUTINE = noise(between=0.9, within=0.1, before=10, after=10, routine=5.0)
ALL_HISTORY = noise(between=1.0, within=0.01, before=20, after=20, routine=5.0)


def settled(known: Components, *, updates: int = 8, config: AdaptiveConfig | None = None):
    adaptive = AdaptiveShape(config or AdaptiveConfig(), USUAL)
    for _ in range(updates):
        adaptive.end_update(known)
    return adaptive


def test_branching_is_kept_where_a_long_routine_is_shared():
    chosen = settled(LONG_ROUTINE).chosen
    assert chosen.branches
    assert chosen.siblings >= 4
    assert efficiency(LONG_ROUTINE, chosen, episodes=16) < 0.6


@pytest.mark.parametrize("known", [NO_ROUTINE, ALL_HISTORY])
def test_episodes_stay_independent_where_forks_bring_nothing(known):
    assert efficiency(known, USUAL, episodes=16) > 1
    assert not settled(known).chosen.branches


@pytest.mark.parametrize("known", [LONG_ROUTINE, NO_ROUTINE, ALL_HISTORY])
def test_what_is_chosen_costs_what_is_usual(known):
    chosen = settled(known).chosen
    assert cost(known, chosen) == pytest.approx(cost(known, USUAL), rel=0.25)


def test_bounds_are_kept():
    config = AdaptiveConfig(max_siblings=4, max_roots=3)
    chosen = settled(LONG_ROUTINE, config=config).chosen
    assert chosen.siblings <= 4
    assert chosen.roots <= 3


def test_nothing_is_chosen_before_enough_updates_have_branched():
    assert settled(NO_ROUTINE, updates=4).chosen == USUAL
    assert not settled(NO_ROUTINE, updates=5).chosen.branches


@pytest.mark.parametrize("known", [None, Components(prefix_cost=3, continuation_cost=2)])
def test_without_variance_there_is_no_reason_to_change(known):
    assert settled(known, updates=50).chosen == USUAL


def test_a_small_promise_is_not_enough():
    adaptive = settled(LONG_ROUTINE)
    chosen = adaptive.chosen
    little = replace(LONG_ROUTINE, within=1.05, between=0.012)
    for _ in range(20):
        adaptive.end_update(little)
        assert adaptive.chosen.siblings == chosen.siblings
    for _ in range(20):
        adaptive.end_update(NO_ROUTINE)
    assert not adaptive.chosen.branches


def test_now_and_then_an_update_branches_to_see_and_branching_can_come_back():
    adaptive = settled(NO_ROUTINE, config=AdaptiveConfig(probe_every=3))
    pattern = []
    for _ in range(12):
        pattern.append(adaptive.shape.branches)
        adaptive.end_update(NO_ROUTINE)
    assert pattern == 3 * pattern[:4]
    assert pattern.count(True) == 3
    while not adaptive.shape.branches:
        adaptive.end_update(NO_ROUTINE)
    assert adaptive.shape == USUAL
    adaptive.end_update(LONG_ROUTINE)
    assert adaptive.chosen.branches


def test_state_goes_through_json_and_back():
    config = AdaptiveConfig(probe_every=4)
    straight = settled(NO_ROUTINE, updates=10, config=config)
    resumed = AdaptiveShape(config, USUAL)
    resumed.load_state_dict(json.loads(json.dumps(straight.state_dict())))
    for known in [NO_ROUTINE] * 6 + [LONG_ROUTINE] * 6:
        assert straight.shape == resumed.shape
        straight.end_update(known)
        resumed.end_update(known)
