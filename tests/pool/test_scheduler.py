"""Branches that wait: fair between trees, near their snapshots, and never too many."""

from __future__ import annotations

from collections import Counter

import pytest

import sandboxgym as sg
from sandboxgym.core.errors import BranchQueueFullError, SpecMismatchError
from sandboxgym.pool import BranchQueue
from tests.pool.toys import Walk, plain, walk


@pytest.fixture(scope="module")
def shared():
    with sg.ForkPool(walk, 6, workers=2) as pool:
        yield pool


@pytest.fixture
def pool(shared):
    shared.release(*shared.lanes)
    return shared


@pytest.fixture
def moment(pool):
    pool.reset(0, seed=1)
    handle = pool.snapshot(0)
    pool.release(0)
    return handle


def begun_trees(queue):
    return Counter(one.branch.tree for one in queue.begin())


def test_a_wide_tree_does_not_hold_up_the_others(pool, moment):
    queue = BranchQueue(pool)
    for i in range(20):
        queue.add("wide", moment, note=i)
    for tree in ("narrow", "other"):
        for _ in range(2):
            queue.add(tree, moment)
    assert begun_trees(queue) == {"wide": 2, "narrow": 2, "other": 2}
    assert queue.waiting == 18


def test_whoever_is_alone_has_all_lanes(pool, moment):
    queue = BranchQueue(pool)
    for i in range(10):
        queue.add("only", moment, note=i)
    begun = queue.begin()
    assert [one.branch.note for one in begun] == [0, 1, 2, 3, 4, 5]
    assert queue.begin() == []
    queue.finish(begun[3].lane)
    (next_one,) = queue.begin()
    assert (next_one.lane, next_one.branch.note) == (begun[3].lane, 6)


def test_lanes_that_a_tree_has_besides_count(pool, moment):
    queue = BranchQueue(pool)
    for _ in range(3):
        queue.count(pool.take(), "with roots")
    for tree in ("with roots", "without"):
        for _ in range(3):
            queue.add(tree, moment)
    assert begun_trees(queue) == {"without": 3}


def test_turns_go_round(pool, moment):
    queue = BranchQueue(pool)
    for lane in pool.lanes[1:]:
        queue.count(lane, "others")
        pool.reset(lane, seed=0)
    for _ in range(3):
        for tree in "abc":
            queue.add(tree, moment)
    turns = []
    while begun := queue.begin():
        turns.append(begun[0].branch.tree)
        queue.finish(begun[0].lane)
    assert "".join(turns) == "abcabcabc"


def test_no_more_wait_than_the_bound(pool, moment):
    queue = BranchQueue(pool, bound=3)
    for _ in range(3):
        queue.add("tree", moment)
    assert queue.room == 0
    with pytest.raises(BranchQueueFullError, match="3 branches wait"):
        queue.add("tree", moment)
    queue.begin()
    assert queue.room == 3
    with pytest.raises(ValueError, match="bound"):
        BranchQueue(pool, bound=0)


def test_branches_begin_at_their_snapshots_with_their_seeds(pool, moment):
    queue = BranchQueue(pool)
    for seed in (3, 4, 3):
        queue.add("tree", moment, seed=seed)
    begun = queue.begin()
    first = pool.restore(5, moment)
    assert all(plain((one.obs, one.info)) == plain(first) for one in begun)
    ways = [[pool.step({one.lane: 0})[one.lane][0][0] for _ in range(6)] for one in begun]
    assert ways[0] == ways[2] != ways[1]


def test_they_get_lanes_near_their_snapshots(pool, moment):
    pool.reset(5, seed=1)
    far = pool.snapshot(5)
    pool.release(5)
    queue = BranchQueue(pool)
    for handle in (moment, far, moment, far):
        queue.add("tree", handle)
    lanes = {one.branch.snapshot: one.lane for one in queue.begin()}
    assert lanes[moment] < 3 <= lanes[far]
    assert moment.blob is None
    assert far.blob is None


def test_one_that_cannot_begin_is_given_up_and_the_others_wait_again(pool, moment):
    foreign = Walk(end=7)
    foreign.reset(seed=1)
    queue = BranchQueue(pool)
    queue.add("tree", moment, note=0)
    queue.add("tree", sg.snapshot(foreign), note=1)
    queue.add("tree", moment, note=2)
    with pytest.raises(SpecMismatchError):
        queue.begin()
    assert len(pool.free) == 6
    assert [one.branch.note for one in queue.begin()] == [0, 2]
