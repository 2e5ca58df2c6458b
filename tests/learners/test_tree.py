from __future__ import annotations

import json

import pytest

from sandboxgym_learners.tree import Group, Segment, TreeFormatError
from tests.learners.trees import example, group, segment, step


def test_visits_tell_level_weight_and_reward_above():
    seen = [
        (len(v.segment.steps), v.level, round(v.weight, 9), v.reward_above)
        for v in example().visits()
    ]
    twelfth = round(1 / 12, 9)
    assert seen == [
        (2, 0, 0.5, 0),
        (1, 1, 0.25, 1),
        (1, 2, twelfth, 2),
        (1, 2, twelfth, 2),
        (2, 2, twelfth, 2),
        (1, 1, 0.25, 1),
        (1, 0, 0.5, 0),
    ]


def test_returns_include_the_shared_prefix():
    assert example().returns() == [5, 2, 2, 5, 2]


def test_a_shared_prefix_costs_once():
    assert example().env_steps() == 9
    assert len(list(example().steps())) == 9


def test_mean_return_averages_every_group_first():
    tree = example()
    assert tree.mean_return() == 3
    assert tree.members[0].mean_return() == 4


def test_leaf_weights_add_up_to_one():
    assert sum(leaf.weight for leaf in example().leaves()) == pytest.approx(1)


def test_success_rate_counts_leaves_by_weight():
    assert example().success_rate() == pytest.approx(1 / 12 + 1 / 4)


def test_groups_are_found_at_every_level():
    assert [found.planned for found in example().groups()] == [2, 2, 3]


def test_distinct_actions_look_at_the_first_decision_of_each_member():
    members = [
        Segment([step(action=action), step(action="look")]) for action in ("go", "stay", "go")
    ]
    assert group(*members).distinct_actions() == 2


def test_a_lost_member_leaves_the_weights_of_the_others():
    tree = group(segment(1), segment(2), planned=4)
    assert [visit.weight for visit in tree.visits()] == [0.25, 0.25]


def test_a_tree_survives_json():
    tree = example()
    assert Group.from_json(json.loads(json.dumps(tree.to_json()))) == tree


@pytest.mark.parametrize(
    ("members", "planned"), [([], 1), ([segment(1), segment(2)], 1)], ids=["empty", "too many"]
)
def test_a_group_that_does_not_fit_its_plan_is_refused(members, planned):
    broken = Group(members, planned)
    with pytest.raises(TreeFormatError, match="planned"):
        list(broken.visits())
    with pytest.raises(TreeFormatError, match="planned"):
        Group.from_json(broken.to_json())


def test_malformed_json_is_refused_with_its_place():
    data = example().to_json()
    data["members"][0]["steps"][1]["reward"] = "much"
    with pytest.raises(TreeFormatError, match=r"members\[0\]\.steps\[1\]\.reward"):
        Group.from_json(data)
    del data["members"]
    with pytest.raises(TreeFormatError, match="members"):
        Group.from_json(data)
