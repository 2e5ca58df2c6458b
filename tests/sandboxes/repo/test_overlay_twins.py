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


def test_names_given_after_a_snapshot_are_names_of_the_same_thing(backend, base_cache, tmp_path):
    """A link, a FIFO and a socket too, which an overlay copies up under one name."""
    base = make_base(tmp_path, base_cache)
    with backend.create(base) as sandbox:
        sandbox.run(
            "cd /repo; ln -s nowhere link; mkfifo pipe; "
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'; "
            "for n in link pipe socket; do ln -P $n $n.2; done"
        )
        sandbox.snapshot()
        done = sandbox.run("for n in link pipe socket; do ln -P $n $n.3; stat -c %h $n.?; done")
        assert done.output.split() == ["3", "3"] * 3
