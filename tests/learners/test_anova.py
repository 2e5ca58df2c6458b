from __future__ import annotations

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest

from benchmarks.branching_efficiency import closed_form
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
from sandboxgym_learners.algorithms import Shape
from sandboxgym_learners.anova import Components, NestedAnova, components, squared_score
from sandboxgym_learners.branching import EntropyTrigger
from sandboxgym_learners.efficiency import cost, efficiency, variance
from tests.learners.trees import group, segment, step

CASES = random_cases(3, limit=800) + random_cases(1, max_branches=2, limit=1_000)


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


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.seed)
def expected(request) -> tuple[Sampler, Components]:
    return request.param.sampler, expected_components(request.param.sampler)


def test_components_of_variance_are_unbiased_and_add_up(expected):
    sampler, found = expected
    alone = replace(sampler, backbones=1)
    v, _ = values(sampler.mdp, sampler.policy)

    def expected_return(tree) -> float:
        root = tree.members[0]
        state = int(root.steps[-1].observation) if root.steps else 0
        return root.own_reward() + v[len(root.steps), state]

    _, between = moments((p, expected_return(tree)) for p, tree in outcomes(alone))
    _, total = moments((p, tree.mean_return()) for p, tree in outcomes(replace(alone, rule=None)))
    assert found.between == pytest.approx(between, abs=1e-12)
    assert found.within == pytest.approx(total - between, abs=1e-12)


def test_costs_and_scores_add_up_to_those_of_an_episode(expected):
    sampler, found = expected
    alone = replace(sampler, backbones=1, rule=None)
    policy = sampler.policy
    steps = score = 0.0
    for probability, tree in outcomes(alone):
        steps += probability * tree.env_steps()
        score += probability * sum(
            np.square(policy.score(int(step.prompt), step.choice)).sum() for step in tree.steps()
        )
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


def test_the_prediction_is_exact_where_returns_are_noise():
    policy = TabularPolicy(np.array([[0.0, 3.0], [0.5, 0.0], [0.0, 0.0]]))
    rule = EntropyTrigger(threshold=policy.entropies[1])
    assert policy.entropies[0] < policy.entropies[1]
    tree = Sampler(noise_world(0.4, 1.0), policy, rule, backbones=2, siblings=2)
    episodes = replace(tree, rule=None, backbones=2)
    measured = (gradient_variance(tree, nested_loo) * 6) / (gradient_variance(episodes, rloo) * 4)
    found = expected_components(tree)
    assert found.between == pytest.approx(0.4**2)
    assert found.within == pytest.approx(1)
    assert efficiency(found, Shape(2, 2, 1), episodes=2) == pytest.approx(measured, rel=1e-12)


@pytest.mark.parametrize("shape", [Shape(2, 2, 1), Shape(2, 8, 1), Shape(5, 3, 1)], ids=str)
def test_the_prediction_is_the_closed_form_where_deviations_and_scores_are_independent(shape):
    between, within, before, after = 0.3, 1.1, 0.7, 0.2
    parts = Components(
        between=between,
        within=within,
        prefix_cost=9,
        continuation_cost=3,
        prefix_score=before,
        continuation_score=after,
        prefix_signal=2 * between * before,
        prefix_noise=within * before,
        fork_judged=within * after,
        fork_baseline=within * after,
        episode=2 * (between + within) * (before + after),
    )
    assert efficiency(parts, shape, episodes=16) == pytest.approx(
        closed_form(
            eta=between / (between + within),
            remaining=3 / 12,
            prefix_score=before / (before + after),
            roots=shape.roots,
            siblings=shape.siblings,
            episodes=16,
        )
    )


def second_moments(sampler: Sampler) -> dict[str, float]:
    """What the components with scores should be, from single histories and episodes."""
    alone = replace(sampler, backbones=1)
    v, _ = values(sampler.mdp, sampler.policy)

    def score(steps) -> float:
        return sum(np.square(sampler.policy.score(int(s.prompt), s.choice)).sum() for s in steps)

    histories, episodes, noise, judged, baseline = [], [], 0.0, 0.0, 0.0
    for p, tree in outcomes(replace(alone, siblings=1)):
        root = tree.members[0]
        rest = root.branch.members[0] if root.branch else segment()
        while rest.branch is not None:
            rest.steps += rest.branch.members[0].steps
            rest.branch = rest.branch.members[0].branch
        state = int(root.steps[-1].observation) if root.steps else 0
        mean = root.own_reward() + v[len(root.steps), state]
        total = root.own_reward() + rest.own_reward()
        histories.append((p, mean, score(root.steps)))
        episodes.append((p, total, score(root.steps) + score(rest.steps)))
        noise += p * (total - mean) ** 2 * score(root.steps)
        judged += p * (total - mean) ** 2 * score(rest.steps)
    for p, tree in outcomes(replace(alone, siblings=2)):
        root = tree.members[0]
        if root.branch is None:
            continue
        state = int(root.steps[-1].observation) if root.steps else 0
        one, two = (member for member in root.branch.members)
        baseline += p * (one.own_reward() - v[len(root.steps), state]) ** 2 * score(two.steps)

    def pairs(listed) -> float:
        return sum(p * q * (x - y) ** 2 * (s + t) / 2 for p, x, s in listed for q, y, t in listed)

    return {
        "prefix_signal": pairs(histories),
        "prefix_noise": noise,
        "fork_judged": judged,
        "fork_baseline": baseline,
        "episode": pairs(episodes),
    }


def test_products_of_deviations_and_scores_are_unbiased(expected):
    sampler, pair = expected
    wanted = second_moments(sampler)
    for name in ("prefix_signal", "prefix_noise", "episode"):
        assert getattr(pair, name) == pytest.approx(wanted[name], abs=1e-12)
    if sampler.rule.max_branches > 1:
        return  # the members of the first group are then no single episodes
    both = (wanted["fork_judged"] + wanted["fork_baseline"]) / 2
    assert pair.fork_judged == pair.fork_baseline == pytest.approx(both, abs=1e-12)


def test_three_siblings_tell_own_from_foreign_scores():
    [case] = random_cases(1, siblings=3, limit=2_000)
    wanted = second_moments(case.sampler)
    found = expected_components(case.sampler)
    assert found.fork_judged == pytest.approx(wanted["fork_judged"], abs=1e-12)
    assert found.fork_baseline == pytest.approx(wanted["fork_baseline"], abs=1e-12)
    assert abs(found.fork_judged - found.fork_baseline) > 1e-4


@pytest.mark.parametrize("others", [1, 3, 20])
def test_a_squared_score_is_exact_where_the_others_are_equally_likely(others):
    taken = 0.3
    rest = (1 - taken) / others
    entropy = -taken * math.log(taken) - others * rest * math.log(rest)
    decision = step(entropy=entropy)
    decision.logprob = math.log(taken)
    assert squared_score(decision) == pytest.approx((1 - taken) ** 2 + others * rest**2)


def test_a_certain_decision_has_no_score():
    decision = step(entropy=0.0)
    decision.logprob = -1e-15
    assert squared_score(decision) == 0


def test_a_text_is_scored_by_its_tokens():
    decision = step()
    decision.written_logprobs = (math.log(0.5), math.log(0.9))
    assert squared_score(decision) == pytest.approx(0.25 + 0.01)


def test_the_running_estimate_forgets():
    calm, wild = tree_of_pairs(1.0, 1.5), tree_of_pairs(0.0, 4.0)
    anova = NestedAnova(memory=0.5)
    anova.end_update([calm])
    assert anova.known.within == pytest.approx(0.125)
    anova.end_update([wild])
    assert anova.known.within == pytest.approx((0.5 * 0.125 + 8.0) / 1.5)


def test_what_is_known_gets_older_while_nothing_branches():
    anova = NestedAnova(memory=0.5)
    anova.end_update([tree_of_pairs(1.0, 1.5)])
    before = anova.known
    anova.end_update([group(segment(0), segment(1))])
    assert anova.known == before
    anova.end_update([tree_of_pairs(0.0, 4.0)])
    assert anova.known.within == pytest.approx((0.25 * 0.125 + 8.0) / 1.25)


def tree_of_pairs(*pair: float):
    def root():
        return segment(0, 0, 0, branch=group(*(segment(value) for value in pair)))

    return group(root(), root())


def test_shares_come_from_the_components():
    anova = NestedAnova()
    roots = [segment(0, 0, 0, branch=group(segment(v), segment(v + 2))) for v in (0.0, 4.0)]
    anova.end_update([group(*roots)])
    known = anova.known
    assert (known.within, known.between) == (2, 8 - 1)
    assert known.eta == pytest.approx(7 / 9)
    assert known.remaining == 1 / 4
    assert known.prefix_score == pytest.approx(3 * known.continuation_score)


def test_a_root_that_ended_before_branching_counts_as_all_history():
    known = components(group(segment(0, branch=group(segment(0), segment(2))), segment(5)))
    assert known.within == 1
    assert known.between == 8 - 0.5


def test_nothing_is_known_before_something_branched():
    anova = NestedAnova()
    anova.end_update([group(segment(0), segment(1))])
    anova.end_update([group(segment(0, branch=group(segment(0), segment(2))))])
    assert anova.known is None


def test_without_variance_there_is_no_share():
    known = components(tree_of_pairs(0.0, 0.0))
    assert known.eta is None
    assert efficiency(known, Shape(2, 2, 1), episodes=4) is None


def test_eta_stays_a_share_where_the_estimate_between_is_negative():
    known = components(tree_of_pairs(0.0, 2.0))
    assert known.between == -1
    assert known.eta == 0
    assert variance(known, Shape(2, 2, 1)) > 0


def test_the_least_price_is_at_the_optimum_of_two_stage_sampling_where_only_histories_learn():
    parts = Components(
        between=0.5,
        within=2.0,
        prefix_cost=20,
        continuation_cost=5,
        prefix_score=1,
        prefix_signal=2 * 0.5,
        prefix_noise=2.0,
    )
    best = math.sqrt(2.0 / 0.5 * 20 / 5)  # the within/between, prefix/continuation rule: 4

    def price(siblings: int) -> float:
        shape = Shape(100, siblings, 1)
        return variance(parts, shape) * cost(parts, shape)

    assert min(range(2, 20), key=price) == best


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
