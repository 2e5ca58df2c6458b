"""Templates are kept within limits, and what is evicted is replayed."""

from __future__ import annotations

import copy
import pickle

import pytest

from tests.mechanisms.process_lab import answer, lab


def test_the_template_not_used_for_longest_goes_first():
    env = lab(max_templates=3)
    snapshots = []
    for _ in range(3):
        env.step("nothing")
        snapshots.append(env.snapshot())
    env.restore(snapshots[0])
    env.step("nothing")
    snapshots.append(env.snapshot())  # evicts the second, since the first was used
    expected = {0: 0, 2: 0, 3: 0, 1: 2}
    for number, replayed in expected.items():
        before = env.metrics.get("replayed_steps", 0)
        env.restore(snapshots[number])
        assert env.metrics.get("replayed_steps", 0) - before == replayed
        steps = {0: 1, 1: 2, 2: 3, 3: 2}[number]
        assert env.step("nothing")[4] == {"log": ["nothing"] * (steps + 1)}
    env.close()


def test_forks_share_one_budget():
    env = lab(max_templates=2)
    env.step("nothing")
    first = env.snapshot()
    twin = env.spawn()
    twin.restore(first)
    kept = [twin.snapshot(), twin.snapshot()]
    assert "replayed_steps" not in env.metrics
    env.restore(first)
    assert env.metrics["replayed_steps"] == 1
    assert len(kept) == 2
    twin.close()
    env.close()


def test_templates_that_no_snapshot_holds_do_not_count():
    env = lab(max_templates=2)
    first = env.snapshot()
    for _ in range(5):
        env.snapshot()
    env.restore(first)
    assert "replayed_steps" not in env.metrics
    env.close()


def test_memory_is_kept_within_its_limit_also_as_templates_stop_sharing_it():
    env = lab(max_memory=145 * 2**20)
    snapshots = []
    for number in range(3):
        env.step("let_go")  # from now on the template before has its 60 MB alone
        env.step("heap 60")
        env.step(f"write size {number}")
        snapshots.append(env.snapshot())  # shares 60 MB with the live worker
    env.restore(snapshots[2])
    assert "replayed_steps" not in env.metrics
    env.restore(snapshots[0])
    assert env.metrics["replayed_steps"] == 3
    assert answer(env, "read size") == "0"
    env.close()


def test_collections_of_garbage_do_not_unshare_what_was_built():
    env = lab(built="heap 100")
    template = env.snapshot().held
    env.step("collect")
    assert env._process.memory() < 50 * 2**20  # a third, beside little of its own
    assert not template.gone
    env.close()


def test_templates_share_their_memory():
    env = lab()
    env.step("heap 100")
    templates = [env.snapshot().held for _ in range(10)]
    for template in templates:
        template.measure()
    assert sum(template.memory for template in templates) < 200 * 2**20
    env.close()


def test_copies_of_a_snapshot_share_its_template_which_is_never_pickled():
    env = lab()
    env.step("nothing")
    snapshot = env.snapshot()
    twin = copy.deepcopy(snapshot)
    del snapshot
    env.restore(twin)
    assert "replayed_steps" not in env.metrics
    with pytest.raises(TypeError, match="to_bytes"):
        pickle.dumps(twin)
    env.close()
