from __future__ import annotations

import warnings

import pytest

from sandboxgym_learners.advantages import (
    gae,
    grpo,
    leave_one_out,
    nested_loo,
    paper,
    rloo,
    standardise,
    vineppo,
)
from sandboxgym_learners.branching import BiasWarning, warn_biased
from sandboxgym_learners.tree import Group, Segment, TreeFormatError
from tests.learners.trees import example, group, segment


def credit(tree: Group) -> list[tuple[float, float]]:
    """Advantage and weight of the first decision of every segment."""
    first = [visit.segment.steps[0] for visit in tree.visits()]
    return [(pytest.approx(step.advantage), pytest.approx(step.weight)) for step in first]


def test_nested_loo_compares_each_segment_with_the_other_members_of_its_group():
    tree = example()
    nested_loo(tree)
    assert credit(tree) == [
        (2, 1 / 2),  # 4 against 2
        (-2, 1 / 4),  # 2 against 4
        (3, 1 / 12),  # 3 against 0 and 0
        (-1.5, 1 / 12),
        (-1.5, 1 / 12),
        (2, 1 / 4),
        (-2, 1 / 2),
    ]


def test_every_decision_of_a_segment_has_the_same_credit():
    tree = example()
    nested_loo(tree)
    for visit in tree.visits():
        assert len({(step.advantage, step.weight) for step in visit.segment.steps}) == 1


def test_a_group_of_one_gets_advantage_zero_and_not_its_reward():
    tree = group(segment(5, branch=group(segment(7))))
    nested_loo(tree)
    assert [step.advantage for step in tree.steps()] == [0, 0]
    beside = group(segment(5, branch=group(segment(7))), segment(0))
    nested_loo(beside, mix=0.5)
    assert [step.advantage for step in beside.steps()] == [12, 0, -12]


def test_equal_returns_give_exactly_zero():
    assert leave_one_out([0.1 + 0.2] * 7) == [0.0] * 7


def test_a_lost_sibling_leaves_planned_weights_and_a_baseline_of_those_that_are_there():
    tree = group(segment(1), segment(3), planned=4)
    nested_loo(tree)
    assert credit(tree) == [(-2, 1 / 4), (2, 1 / 4)]


def test_backbone_share_splits_the_weight_below_the_root():
    tree = example()
    nested_loo(tree, backbone_share=0.8)
    assert [weight for _, weight in credit(tree)] == [
        1 / 2,
        1 / 2 * 0.8,
        1 / 2 * 0.8 * 0.8,
        1 / 2 * 0.8 * 0.1,
        1 / 2 * 0.8 * 0.1,
        1 / 2 * 0.2,
        1 / 2,
    ]


def test_mix_takes_part_of_the_baseline_from_the_other_roots():
    tree = example()
    nested_loo(tree, mix=0.25)
    advantages = [advantage for advantage, _ in credit(tree)]
    assert advantages[0] == 2
    assert advantages[1] == 0.25 * -2 + 0.75 * (1 + 2 - 2)  # the path so far paid 1
    assert advantages[2] == 0.25 * 3 + 0.75 * (2 + 3 - 2)  # 2
    assert advantages[5] == 0.25 * 2 + 0.75 * (1 + 4 - 2)


def test_mix_needs_a_second_root():
    with pytest.raises(ValueError, match="only one"):
        nested_loo(group(segment(1)), mix=0.5)


def test_vineppo_teaches_the_backbones_alone():
    tree = example()
    vineppo(tree)
    assert [weight for _, weight in credit(tree)] == [1 / 2, 1 / 2, 1 / 2, 0, 0, 0, 1 / 2]


def test_rloo_is_nested_loo_on_the_root_group():
    flat = group(segment(1, 2), segment(0), segment(6))
    same = Group.from_json(flat.to_json())
    rloo(flat)
    nested_loo(same)
    assert flat == same
    assert credit(flat) == [(0, 1 / 3), (-4.5, 1 / 3), (4.5, 1 / 3)]


def test_grpo_has_the_judged_episode_in_its_baseline():
    tree = group(segment(1), segment(0), segment(5))
    grpo(tree)
    assert credit(tree) == [(-1, 1 / 3), (-2, 1 / 3), (3, 1 / 3)]


def test_grpo_divides_by_the_standard_deviation_on_request_and_says_once_that_it_is_biased():
    warn_biased.cache_clear()
    tree = group(segment(1), segment(0), segment(5))
    with pytest.warns(BiasWarning, match="standard deviation"):
        grpo(tree, normalise=True)
    deviation = 7**0.5
    assert [step.advantage for step in tree.steps()] == pytest.approx(
        [-1 / deviation, -2 / deviation, 3 / deviation], rel=1e-5
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grpo(tree, normalise=True)


@pytest.mark.parametrize("returns", [(3,), (2, 2, 2)], ids=["one episode", "equal returns"])
def test_grpo_survives_a_group_without_variance(returns):
    tree = group(*(segment(value) for value in returns))
    grpo(tree, normalise=True)
    assert {step.advantage for step in tree.steps()} == {0.0}


def valued(*rewards_and_values: tuple[float, float]) -> Segment:
    made = segment(*(reward for reward, _ in rewards_and_values))
    for step, (_, value) in zip(made.steps, rewards_and_values, strict=True):
        step.value = value
    return made


def test_gae_between_its_two_ends():
    tree = group(valued((1, 0.5), (0, 2), (3, 1)), valued((0, 0)))
    surprises = [1 + 2 - 0.5, 0 + 1 - 2, 3 - 1]
    ends = {0.0: surprises, 1.0: [4 - 0.5, 3 - 2, 3 - 1]}
    for trace, advantages in ends.items():
        gae(tree, trace=trace)
        assert [step.advantage for step in tree.members[0].steps] == advantages
    gae(tree, gamma=0.5, trace=0.5)
    last = 3 - 1
    middle = (0 + 0.5 * 1 - 2) + 0.25 * last
    first = (1 + 0.5 * 2 - 0.5) + 0.25 * middle
    assert [step.advantage for step in tree.members[0].steps] == [first, middle, last]
    assert {step.weight for step in tree.steps()} == {1 / 2}


def test_advantages_of_an_update_get_mean_zero_and_deviation_one():
    trees = [group(segment(0, 0), segment(0)), group(segment(0), segment(0))]
    steps = [step for tree in trees for step in tree.steps()]
    for number, step in enumerate(steps):
        step.advantage = float(number**2)
    standardise(trees)
    found = [step.advantage for step in steps]
    assert sum(found) == pytest.approx(0, abs=1e-9)
    assert sum(value**2 for value in found) / (len(found) - 1) == pytest.approx(1, rel=1e-5)
    for step in steps:
        step.advantage = 0.5
    standardise(trees)
    assert {step.advantage for step in steps} == {0.0}


@pytest.mark.parametrize("estimator", [rloo, grpo, gae])
def test_estimators_of_independent_episodes_refuse_a_tree_that_branches(estimator):
    with pytest.raises(TreeFormatError, match="branches"):
        estimator(example())


@pytest.mark.filterwarnings("ignore::sandboxgym_learners.branching.BiasWarning")
def test_the_rule_of_the_paper_leaves_the_prefix_without_a_signal():
    tree = example()
    paper(tree)
    assert [advantage for advantage, _ in credit(tree)] == [0, -2, 3, -1.5, -1.5, 2, 0]
    assert [weight for _, weight in credit(tree)] == [w for _, w in _nested_credit()]


def _nested_credit() -> list[tuple[float, float]]:
    tree = example()
    nested_loo(tree)
    return credit(tree)


def test_a_branch_point_in_front_of_the_first_action_leaves_an_empty_segment():
    tree = group(Segment([], group(segment(1), segment(3))), segment(0))
    nested_loo(tree)
    assert [(s.advantage, s.weight) for s in tree.steps()] == [(-2, 0.25), (2, 0.25), (-2, 0.5)]


def test_credit_replaces_what_was_there():
    tree = example()
    nested_loo(tree)
    before = credit(tree)
    nested_loo(tree)
    assert credit(tree) == before


@pytest.mark.parametrize("estimator", [nested_loo, vineppo])
def test_a_broken_group_is_refused(estimator):
    with pytest.raises(TreeFormatError):
        estimator(group(segment(1), segment(2, branch=Group([], 2))))
