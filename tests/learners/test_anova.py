from __future__ import annotations

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest

from benchmarks.enumerable_mdp import (
    EnumerableMDP,
    Outcome,
    Sampler,
    TabularPolicy,
    estimated_gradient,
    outcomes,
    random_cases,
    values,
)
from sandboxgym_learners.advantages import nested_loo, rloo
from sandboxgym_learners.anova import (
    Components,
    NestedAnova,
    best_siblings,
    components,
    predicted_efficiency,
)
from sandboxgym_learners.branching import EntropyTrigger
from tests.learners.trees import group, segment

CASES = random_cases(3, limit=1_500) + random_cases(2, max_branches=2, limit=2_000)


def moments(pairs) -> tuple[float, float]:
    pairs = list(pairs)
    mean = sum(p * value for p, value in pairs)
    return mean, sum(p * (value - mean) ** 2 for p, value in pairs)


def expected_components(sampler) -> Components:
    sums = dict.fromkeys((field.name for field in fields(Components)), 0.0)
    for probability, tree in outcomes(sampler):
        found = components(tree)
        assert found is not None
        for name in sums:
            sums[name] += probability * getattr(found, name)
    return Components(**sums)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.seed)
def test_components_of_variance_are_unbiased_and_add_up(case):
    sampler: Sampler = case.sampler
    alone = replace(sampler, backbones=1)
    v, _ = values(sampler.mdp, sampler.policy)

    def expected_return(tree) -> float:
        root = tree.members[0]
        state = int(root.steps[-1].observation) if root.steps else 0
        return root.own_reward() + v[len(root.steps), state]

    _, between = moments((p, expected_return(tree)) for p, tree in outcomes(alone))
    _, total = moments((p, tree.mean_return()) for p, tree in outcomes(replace(alone, rule=None)))
    found = expected_components(sampler)
    assert found.between == pytest.approx(between, abs=1e-12)
    assert found.within == pytest.approx(total - between, abs=1e-12)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.seed)
def test_costs_and_scores_add_up_to_those_of_an_episode(case):
    alone = replace(case.sampler, backbones=1, rule=None)
    policy = case.sampler.policy
    steps = score = 0.0
    for probability, tree in outcomes(alone):
        steps += probability * tree.env_steps()
        score += probability * sum(
            np.square(policy.score(int(step.prompt), step.choice)).sum() for step in tree.steps()
        )
    found = expected_components(case.sampler)
    assert found.prefix_cost + found.continuation_cost == pytest.approx(steps, abs=1e-12)
    assert found.prefix_score + found.continuation_score == pytest.approx(score, abs=1e-12)


def noise_world(before: float, after: float) -> EnumerableMDP:
    """Two decisions; whatever is chosen, the first pays ± before and the second ± after."""

    def coin(size: float, state: int) -> tuple[Outcome, ...]:
        return (Outcome(0.5, size, state), Outcome(0.5, -size, state))

    return EnumerableMDP(((coin(before, 1),) * 2, (coin(after, 2),) * 2, ()), horizon=2)


def gradient_variance(sampler, estimator) -> float:
    """Trace of the covariance; the true gradient of the noise world is zero."""
    total = 0.0
    for probability, tree in outcomes(sampler):
        estimator(tree)
        total += probability * np.square(estimated_gradient(tree, sampler.policy)).sum()
    return total


@pytest.mark.parametrize(("before", "after"), [(1.0, 1.0), (1.0, 0.3), (0.4, 1.0)])
def test_the_predicted_efficiency_is_exact_where_returns_are_noise(before, after):
    policy = TabularPolicy(np.array([[0.0, 3.0], [0.5, 0.0], [0.0, 0.0]]))
    rule = EntropyTrigger(threshold=policy.entropies[1])
    assert policy.entropies[0] < policy.entropies[1]
    tree = Sampler(noise_world(before, after), policy, rule, backbones=2, siblings=2)
    episodes = replace(tree, rule=None, backbones=2)
    measured = (gradient_variance(tree, nested_loo) * 6) / (gradient_variance(episodes, rloo) * 4)

    found = expected_components(tree)
    predicted = predicted_efficiency(
        eta=found.between / (found.between + found.within),
        remaining=found.continuation_cost / (found.prefix_cost + found.continuation_cost),
        prefix_score=found.prefix_score / (found.prefix_score + found.continuation_score),
        roots=2,
        siblings=2,
        episodes=2,
    )
    assert found.between == pytest.approx(before**2)
    assert found.within == pytest.approx(after**2)
    assert predicted == pytest.approx(measured, rel=1e-12)


def test_the_running_estimate_forgets():
    calm, wild = tree_of_pairs(1.0, 1.5), tree_of_pairs(0.0, 4.0)
    anova = NestedAnova(memory=0.5)
    anova.end_update([calm])
    assert anova.within == pytest.approx(0.125)
    anova.end_update([wild])
    assert anova.within == pytest.approx((0.5 * 0.125 + 8.0) / 1.5)


def tree_of_pairs(*pair: float):
    def root():
        return segment(0, 0, 0, branch=group(*(segment(value) for value in pair)))

    return group(root(), root())


def test_shares_and_predictions_come_from_the_components():
    anova = NestedAnova()
    roots = [segment(0, 0, 0, branch=group(segment(v), segment(v + 2))) for v in (0.0, 4.0)]
    anova.end_update([group(*roots)])
    assert anova.within == 2
    assert anova.between == 8 - 1
    assert anova.eta == pytest.approx(7 / 9)
    assert anova.remaining == 1 / 4
    assert anova.prefix_score == pytest.approx(3 / 4)
    assert anova.best_siblings() == 1.0
    assert anova.efficiency(roots=2, siblings=8, episodes=16) == predicted_efficiency(
        eta=7 / 9, remaining=1 / 4, prefix_score=3 / 4, roots=2, siblings=8, episodes=16
    )


def test_a_root_that_ended_before_branching_counts_as_all_history():
    anova = NestedAnova()
    anova.end_update([group(segment(0, branch=group(segment(0), segment(2))), segment(5))])
    assert anova.within == 1
    assert anova.between == 8 - 0.5


def test_nothing_is_known_before_something_branched():
    anova = NestedAnova()
    anova.end_update([group(segment(0), segment(1))])
    anova.end_update([group(segment(0, branch=group(segment(0), segment(2))))])
    assert not anova.known
    assert anova.eta is anova.within is anova.between is anova.best_siblings() is None
    assert anova.efficiency(roots=2, siblings=8, episodes=16) is None


def test_without_variance_there_is_no_share():
    anova = NestedAnova()
    anova.end_update([tree_of_pairs(0.0, 0.0)])
    assert anova.known
    assert anova.eta is None
    assert anova.best_siblings() == 1.0


def test_eta_stays_a_share_where_the_estimate_between_is_negative():
    anova = NestedAnova()
    anova.end_update([tree_of_pairs(0.0, 2.0)])
    assert anova.between == -1
    assert anova.eta == 0
    assert anova.best_siblings() == math.inf


def test_the_best_number_of_siblings_minimises_variance_times_cost():
    between, within, prefix, continuation = 0.5, 2.0, 20.0, 5.0
    best = best_siblings(
        between=between, within=within, prefix_cost=prefix, continuation_cost=continuation
    )
    assert best == pytest.approx(4)

    def price(k: float) -> float:
        return (between + within / k) * (prefix + continuation * k)

    assert price(best) < min(price(best * 1.1), price(best / 1.1))


def test_state_goes_through_json_and_back():
    anova, resumed = NestedAnova(), NestedAnova()
    anova.end_update([tree_of_pairs(0.1, 0.7)])
    resumed.load_state_dict(json.loads(json.dumps(anova.state_dict())))
    for each in (anova, resumed):
        each.end_update([tree_of_pairs(0.3, 0.9)])
    assert resumed.state_dict() == anova.state_dict()


def test_a_memory_that_is_no_share_is_refused():
    with pytest.raises(ValueError, match="memory"):
        NestedAnova(memory=1.5)
