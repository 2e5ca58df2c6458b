"""Credits of rows are those of the tree, and refuse rows that are no tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxgym.integrations.credit import (
    RolloutTreeError,
    Segment,
    nested_leave_one_out,
    per_token,
)
from sandboxgym_learners.advantages import nested_loo
from sandboxgym_learners.tree import Group, Step
from sandboxgym_learners.tree import Segment as TreeSegment


def step(reward: float) -> Step:
    return Step(
        prompt="",
        candidates=(),
        choice=-1,
        action="",
        logprob=0.0,
        entropy=0.0,
        reward=reward,
        observation="",
        depth=0,
    )


rewards = st.sampled_from([0.0, 0.25, 1.0])
segments = st.recursive(
    rewards.map(lambda r: TreeSegment([step(r)])),
    lambda below: st.builds(
        lambda r, members: TreeSegment([step(r)], Group(members, len(members))),
        rewards,
        st.lists(below, min_size=1, max_size=3),
    ),
    max_leaves=8,
)
trees = st.lists(segments, min_size=1, max_size=3).map(lambda roots: Group(roots, len(roots)))


def leaves(group: Group, above: tuple[Segment, ...] = ()) -> list[tuple[Segment, ...]]:
    found = []
    for index, member in enumerate(group.members):
        path = (*above, Segment(index, 1, member.own_reward()))
        found += [path] if member.branch is None else leaves(member.branch, path)
    return found


@given(trees)
def test_credits_are_those_of_the_estimator_on_the_tree(tree):
    nested_loo(tree)
    paths = leaves(tree)
    credit = nested_leave_one_out(paths)
    found: dict[tuple, float] = {}
    for path, values in zip(paths, credit, strict=True):
        for depth, value in enumerate(values):
            address = tuple(segment.member for segment in path[: depth + 1])
            found[address] = found.get(address, 0.0) + value

    def check(group: Group, above: tuple[int, ...]) -> None:
        for index, member in enumerate(group.members):
            (decision,) = member.steps
            expected = decision.weight * decision.advantage
            assert found[(*above, index)] == pytest.approx(expected, abs=1e-9)
            if member.branch is not None:
                check(member.branch, (*above, index))

    check(tree, ())


@given(trees)
def test_a_shared_segment_is_credited_in_one_row_alone(tree):
    paths = leaves(tree)
    credit = nested_leave_one_out(paths)
    seen: set[tuple] = set()
    for path, values in zip(paths, credit, strict=True):
        for depth, value in enumerate(values):
            address = tuple(segment.member for segment in path[: depth + 1])
            assert value == 0 or address not in seen
            if value:
                seen.add(address)


def test_credits_are_spread_over_tokens():
    leaf = (Segment("a", 2, 0.0), Segment("b", 3, 1.0))
    assert per_token(leaf, [0.5, -1.0]) == [0.5, 0.5, -1.0, -1.0, -1.0]


def test_no_rows_are_a_tree_without_leaves():
    assert nested_leave_one_out([]) == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(Segment(0, 1, 0.0),), (Segment(0, 1, 0.0),)], "row 0 ends with a segment that row 1"),
        ([(Segment(0, 1, 0.0),), (Segment(0, 2, 0.0), Segment(1, 1, 0.0))], "differently"),
        ([(Segment(0, 1, 0.0), Segment(0, 1, 0.0)), (Segment(0, 1, 0.0),)], "row 1 ends after 1"),
    ],
)
def test_rows_that_are_no_tree_are_refused(rows, message):
    with pytest.raises(RolloutTreeError, match=message):
        nested_leave_one_out(rows)
