"""The estimators against the truth: expectations are sums over every tree that can be sampled."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from benchmarks.enumerable_mdp import (
    Case,
    Dice,
    Sampler,
    TabularPolicy,
    estimated_gradient,
    exact_gradient,
    expected_gradient,
    outcomes,
    random_cases,
    random_mdp,
    values,
)
from benchmarks.wrong_rules import (
    PostHocSampler,
    branch_steps_only,
    flat_weights,
    own_baseline,
    standardised,
)
from sandboxgym_learners.advantages import grpo, nested_loo, paper, rloo, vineppo
from sandboxgym_learners.branching import Coin

EXACT = 1e-12
PLAINLY_BIASED = 1e-3

pytestmark = pytest.mark.filterwarnings("ignore::sandboxgym_learners.branching.BiasWarning")

SINGLE = random_cases(20, limit=1_500)
SHAPES = {
    "three siblings": random_cases(4, siblings=3, limit=2_000),
    "two branch points": random_cases(3, max_branches=2, limit=2_000),
    "forks branch again": random_cases(4, max_branches=2, forks_branch=True, limit=2_000),
    "three branch points": random_cases(2, max_branches=3, limit=4_100),
}
NESTED = [
    pytest.param(case, id=f"{name} {case.seed}") for name, cases in SHAPES.items() for case in cases
]
UNBIASED = {
    "default": nested_loo,
    "backbone share": partial(nested_loo, backbone_share=0.7),
    "mixed baseline": partial(nested_loo, mix=0.7),
    "both": partial(nested_loo, backbone_share=0.1, mix=0.4),
    "vineppo": vineppo,
}


def bias(case: Case, estimator=nested_loo, sampler=None) -> float:
    sampler = case.sampler if sampler is None else sampler
    expectation = expected_gradient(sampler, estimator, case.sampler.policy)
    return float(np.abs(expectation - case.exact).max())


@pytest.mark.parametrize("case", SINGLE, ids=lambda case: case.seed)
def test_nested_loo_is_exact_with_single_branch_points(case):
    assert bias(case) < EXACT


@pytest.mark.parametrize("case", NESTED)
def test_nested_loo_is_exact_with_nested_branch_points(case):
    assert bias(case) < EXACT


@pytest.mark.parametrize("name", UNBIASED)
@pytest.mark.parametrize("shape", ["single", *SHAPES])
def test_every_unbiased_variant_is_exact_at_every_depth(shape, name):
    case = (SINGLE if shape == "single" else SHAPES[shape])[-1]
    assert bias(case, UNBIASED[name]) < EXACT


@pytest.mark.parametrize("update", range(4))
def test_a_rule_that_tosses_coins_is_exact_whatever_they_show(update):
    [case] = random_cases(1, limit=200)
    coin = Coin(1, probability=0.5, seed=0, update=update)
    assert bias(case, sampler=replace(case.sampler, rule=coin)) < EXACT


def test_branching_at_the_first_decision_is_exact():
    [case] = random_cases(1, limit=200)
    assert bias(case, sampler=replace(case.sampler, rule=Coin(1))) < EXACT


def test_more_roots_stay_exact():
    case = random_cases(1, limit=200)[0]
    assert bias(case, sampler=replace(case.sampler, backbones=3)) < EXACT


@pytest.mark.parametrize("case", SINGLE[:5], ids=lambda case: case.seed)
def test_rloo_is_exact_and_grpo_short_by_the_share_of_itself(case):
    flat = replace(case.sampler, rule=None, backbones=3)
    assert bias(case, rloo, flat) < EXACT
    shortened = expected_gradient(flat, grpo, flat.policy)
    assert np.abs(shortened - 2 / 3 * case.exact).max() < EXACT
    assert bias(case, partial(grpo, normalise=True), flat) > PLAINLY_BIASED


@pytest.mark.parametrize("shape", ["single", "two branch points"])
@pytest.mark.parametrize(
    "wrong",
    [paper, branch_steps_only, flat_weights, own_baseline, standardised],
    ids=lambda rule: rule.__name__,
)
def test_wrong_credit_is_biased_on_every_process(shape, wrong):
    cases = SINGLE[:5] if shape == "single" else SHAPES[shape]
    assert min(bias(case, wrong) for case in cases) > PLAINLY_BIASED


def test_the_rule_of_the_paper_gives_the_prefix_no_signal_where_there_is_one():
    case = SINGLE[0]
    for _, tree in outcomes(case.sampler):
        paper(tree)
        assert all(abs(step.advantage) < EXACT for root in tree.members for step in root.steps)
    start = expected_gradient(case.sampler, paper, case.sampler.policy)[0]
    assert np.abs(start).max() < np.abs(case.exact[0]).max() / 2


def test_a_baseline_that_includes_oneself_halves_the_gradient_of_pairs():
    case = SINGLE[0]
    expectation = expected_gradient(case.sampler, own_baseline, case.sampler.policy)
    assert np.abs(expectation - case.exact / 2).max() < EXACT


@pytest.mark.parametrize("max_branches", [1, 2])
def test_branching_at_the_highest_entropy_of_a_finished_backbone_is_biased(max_branches):
    cases = SINGLE[:5] if max_branches == 1 else SHAPES["two branch points"][:2]
    biases = [bias(case, sampler=PostHocSampler(case.sampler, max_branches)) for case in cases]
    # On some processes entropy falls along every path: then the highest is known beforehand.
    assert sum(found > PLAINLY_BIASED for found in biases) > len(biases) / 2


@pytest.mark.parametrize("case", SINGLE[:5], ids=lambda case: case.seed)
def test_siblings_that_must_differ_are_biased(case):
    assert bias(case, sampler=replace(case.sampler, distinct=True)) > PLAINLY_BIASED


@pytest.mark.parametrize("case", SINGLE[:5], ids=lambda case: case.seed)
def test_a_group_of_one_loses_the_gradient_of_its_decisions(case):
    assert bias(case, sampler=replace(case.sampler, backbones=1)) > PLAINLY_BIASED
    assert bias(case, sampler=replace(case.sampler, siblings=1)) > PLAINLY_BIASED


# The instruments themselves.


def test_outcomes_list_every_sequence_of_choices_once():
    def program(chance):
        first = chance.draw([0.25, 0.0, 0.75])
        return (first, chance.draw([0.5, 0.5])) if first else (first,)

    assert list(outcomes(program)) == [(0.25, (0,)), (0.375, (2, 0)), (0.375, (2, 1))]


@pytest.mark.parametrize("case", SINGLE[:3], ids=lambda case: case.seed)
def test_probabilities_of_all_trees_add_up_to_one(case):
    assert sum(p for p, _ in outcomes(case.sampler)) == pytest.approx(1, abs=1e-12)


def test_the_cases_really_branch_as_deep_as_they_say():
    for name, deepest in [("two branch points", 2), ("three branch points", 3)]:
        for case in SHAPES[name]:
            levels = {v.level for _, tree in outcomes(case.sampler) for v in tree.visits()}
            assert max(levels) == deepest


@pytest.mark.parametrize("seed", range(5))
def test_the_exact_gradient_is_the_slope_of_the_exact_value(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, states=5, actions=3, horizon=5, noisy=0.5)
    logits = rng.normal(size=(5, 3))
    slope = np.zeros_like(logits)
    for index in np.ndindex(*logits.shape):
        nudge = np.zeros_like(logits)
        nudge[index] = 1e-5
        up, down = (
            values(mdp, TabularPolicy(moved))[0][0, 0] for moved in (logits + nudge, logits - nudge)
        )
        slope[index] = (up - down) / 2e-5
    assert exact_gradient(mdp, TabularPolicy(logits)) == pytest.approx(slope, abs=1e-8)


def test_dice_draw_the_trees_that_are_enumerated():
    case = SINGLE[0]
    dice = Dice(np.random.default_rng(0))
    sampler: Sampler = case.sampler
    samples = []
    for _ in range(3_000):
        tree = sampler(dice)
        nested_loo(tree)
        samples.append(estimated_gradient(tree, sampler.policy))
    error = np.abs(np.mean(samples, axis=0) - case.exact)
    assert (error < 5 * np.std(samples, axis=0) / len(samples) ** 0.5 + 1e-9).all()
