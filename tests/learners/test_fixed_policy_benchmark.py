from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import fixed_policy
from benchmarks.fixed_policy import Measured, measure_world
from benchmarks.learning_worlds import WORLDS, World

SHORT = WORLDS["short"]
SMALL = {
    "policy.width": 16,
    "policy.layers": 1,
    "cloning.steps": 100,
    "cloning.tasks": 2,
    "cloning.detour": 0,
    "world.train-tasks": 2,
    "world.horizon": 12,
}


def measured(gradients, steps) -> Measured:
    """Trees of several tasks by their gradients, (tasks, trees, parameters)."""
    return Measured([rows @ rows.T for rows in gradients], list(steps), None, 0.0, 0.0)


@pytest.fixture
def trees():
    dice = np.random.default_rng(0)
    means = dice.normal(size=(3, 1, 5)) * 10
    return dice.normal(size=(3, 8, 5)) + means, dice.integers(5, 9, size=(3, 8)).astype(float)


def test_the_variance_is_that_between_trees_of_one_task(trees):
    gradients, steps = trees
    traces = [np.trace(np.cov(rows.T)) for rows in gradients]
    expected = np.mean(traces) * steps.mean()
    assert measured(gradients, steps).variance_times_cost() == pytest.approx(expected)


def test_trees_drawn_again_have_the_same_variance_on_average(trees):
    one, dice = measured(*trees), np.random.default_rng(1)
    again = [one.resampled(dice) for _ in range(4_000)]
    assert np.mean(again) == pytest.approx(one.variance_times_cost(), rel=0.02)


@pytest.fixture
def small(monkeypatch):
    """The short world, made smaller still; gives a function that changes a part of it."""

    def change(**further):
        settings = {**SHORT.settings, **SMALL, **further}
        monkeypatch.setitem(fixed_policy.WORLDS, "short", World("small", settings, 1.0))

    return change


def test_a_world_is_measured_with_its_own_policy_and_rloo_as_the_unit(small):
    small()
    found = json.loads(json.dumps(measure_world("short", trees=16, seed=0)))
    rows = found["shapes"]
    assert list(rows) == ["rloo", "bpo", "bpo-2x8", "bpo-adaptive", "vineppo"]
    assert rows["rloo"]["over_rloo"] == 1
    assert 0 < found["success"] < 1
    assert 0 < rows["bpo"]["roots_that_branched"] <= 1
    low, high = rows["bpo"]["interval_95"]
    assert low < rows["bpo"]["over_rloo"] < high
    assert rows["vineppo"]["roots_that_branched"] == 1
    assert rows["vineppo"]["steps_of_a_tree"] > rows["rloo"]["steps_of_a_tree"]


def test_a_policy_that_never_wins_is_said_to_tell_nothing(small):
    small(**{"world.horizon": 1})
    with pytest.raises(SystemExit, match="no two returns of a task differ"):
        measure_world("short", trees=2, seed=0)
