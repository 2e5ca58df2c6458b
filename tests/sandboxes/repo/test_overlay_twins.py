"""A sandbox that is forked again and again is, file by file, the twin of one that never is."""

from __future__ import annotations

import pytest

from benchmarks.repo_roundtrips import compare, make_base
from sandboxgym.sandboxes.repo.backend import Limits
from tests.sandboxes.repo.conftest import make_overlay_backend


@pytest.fixture(scope="module")
def backend():
    with make_overlay_backend(Limits(seconds=60.0)) as backend:
        yield backend


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3))])
def test_forks_differ_in_nothing_from_a_twin(backend, base_cache, tmp_path_factory, seed):
    base = make_base(tmp_path_factory.mktemp("twins"), base_cache)
    result = compare(backend, base, rounds=20, seed=seed, big_mib=2)
    assert result["differences"] == []
    assert result["rounds"] == 20
