from __future__ import annotations

import json
import math

import numpy as np
import pytest

from benchmarks.branching_efficiency import measure_efficiency
from benchmarks.branching_worlds import NOISE, errand_world, noise_world
from benchmarks.enumerable_mdp import TabularPolicy, exact_gradient, values
from benchmarks.estimators import measure_variance
from benchmarks.simulated_trees import Estimate, mean_of

pytestmark = pytest.mark.filterwarnings("ignore::sandboxgym_learners.branching.BiasWarning")


def test_the_errand_pays_when_every_decision_is_right():
    mdp, policy = errand_world(3)
    routine, decisive = policy.matrix[0, 0], policy.matrix[6, 0]
    v, _ = values(mdp, policy)
    assert v[0, 0] == pytest.approx(routine**3 * decisive**4)


def test_decisions_do_not_matter_where_returns_are_noise():
    mdp, policy = noise_world(NOISE[0])
    assert isinstance(policy, TabularPolicy)
    assert not exact_gradient(mdp, policy).any()


def test_an_interval_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(1_000):
        low, high = mean_of(rng.exponential(3.0, size=200)).interval()
        hits += low < 3.0 < high
    assert 930 <= hits <= 965


def test_errors_of_independent_estimates_add_as_squares():
    ratio = Estimate(6.0, 0.3) / Estimate(2.0, 0.4)
    assert ratio == Estimate(3.0, pytest.approx(0.5))
    assert ratio.interval() == (
        pytest.approx(3 * math.exp(-0.98)),
        pytest.approx(3 * math.exp(0.98)),
    )


def test_both_tables_are_plain_data_with_rloo_as_the_unit():
    rows = json.loads(json.dumps(measure_variance(20)))
    units = [row for row in rows if row["estimator"] == "rloo 16"]
    assert len(units) == 2
    for row in units:
        assert row["equal_steps"]["value"] == row["equal_returns"]["value"] == 1
    by_name = {(row["world"], row["estimator"]): row for row in rows}
    for (world, name), row in by_name.items():
        if "2x8" in name:
            assert row["returns"] == by_name[world, "rloo 16"]["returns"]
            assert row["env_steps"] < by_name[world, "rloo 16"]["env_steps"]


def test_the_formula_stands_beside_the_simulation():
    rows = json.loads(json.dumps(measure_efficiency(250)))
    assert len(rows) == len(NOISE)
    for row in rows:
        for name in ("formula", "predicted"):
            assert row["simulated"]["low"] / 1.2 < row[name] < row["simulated"]["high"] * 1.2
