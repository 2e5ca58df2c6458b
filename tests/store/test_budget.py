from __future__ import annotations

import subprocess
import sys

import gymnasium as gym
import pytest

import sandboxgym as sg
from tests.core import test_forking  # registers tests/RandomWalk-v0
from tests.store.moments import assert_same, walk, with_noise

SIZE = 10_000
NOISY = [with_noise(seed, SIZE) for seed in range(12)]


def states(store):
    return [entry.state for entry in store.ls()]


@pytest.fixture(params=["memory", "disk"])
def small(request, tmp_path):
    """A store with room for about five of the noisy states."""
    budget = 5 * SIZE + 5000
    if request.param == "memory":
        return sg.SnapshotStore(budget_bytes=budget)
    return sg.SnapshotStore(tmp_path, disk_budget_bytes=budget)


def test_the_states_that_were_not_used_for_longest_go_first(small):
    keys = [small.put(moment) for moment in NOISY[:4]]
    assert states(small) == ["kept"] * 4
    small.get(keys[0])
    keys += [small.put(moment) for moment in NOISY[4:6]]
    assert small.ls()[0].state == "kept"
    assert small.ls()[1].state == "dropped"
    assert small.ls()[5].state == "kept"


def test_the_budget_is_kept_however_much_is_put(small):
    for moment in NOISY:
        key = small.put(moment)
        assert small.size <= 5 * SIZE + 5000
        assert_same(small.get(key), moment)
    assert states(small).count("kept") >= 3
    assert small.verify() == []


def test_what_was_dropped_is_declared_and_comes_back_when_it_is_put_again(small):
    keys = [small.put(moment) for moment in NOISY]
    assert states(small)[0] == "dropped"
    assert_same(small.get(keys[0]), NOISY[0].drop_state())
    assert small.put(NOISY[0]) == keys[0]
    assert states(small)[0] == "kept"
    assert_same(small.get(keys[0]), NOISY[0])


def test_a_pinned_state_is_kept(small):
    first = small.put(NOISY[0])
    small.pin(first)
    for moment in NOISY[1:]:
        small.put(moment)
    assert_same(small.get(first), NOISY[0])
    small.unpin(first)
    for moment in [*NOISY[1:], *NOISY[1:]]:
        small.put(moment)
    assert small.get(first).state is None


def test_a_state_larger_than_the_budget_is_dropped_at_once_and_takes_no_other_with_it(small):
    key = small.put(NOISY[0])
    large = with_noise(99, 8 * SIZE)
    assert_same(small.get(small.put(large)), large.drop_state())
    assert_same(small.get(key), NOISY[0])


def test_what_is_used_all_the_time_is_never_dropped(small):
    favourite = small.put(NOISY[0])
    for moment in [*NOISY[1:], *NOISY[1:]]:
        small.put(moment)
        assert_same(small.get(favourite), NOISY[0])


def test_what_another_process_drops_or_removes_is_dropped_or_removed_here_too(tmp_path):
    limits = {"budget_bytes": 0, "disk_budget_bytes": 5 * SIZE + 5000}
    here, there = (sg.SnapshotStore(tmp_path, **limits) for _ in range(2))
    first, second = (here.put(moment) for moment in NOISY[:2])
    for moment in NOISY[2:]:
        there.put(moment)
    assert_same(here.get(first), NOISY[0].drop_state())
    there.remove(second)
    assert second not in here
    there.gc()
    with pytest.raises(sg.SandboxGymError, match="no snapshot"):
        here.get(second)
    assert len(here.ls()) == len(NOISY) - 1


def test_what_was_removed_makes_room_first_and_can_be_put_again(tmp_path):
    store = sg.SnapshotStore(tmp_path, disk_budget_bytes=5 * SIZE + 5000)
    keys = [store.put(moment) for moment in NOISY[:5]]
    for key in keys[:2]:
        store.remove(key)
    assert_same(store.get(store.put(NOISY[5])), NOISY[5])
    assert states(store) == ["kept"] * 4
    for key in keys[2:]:
        store.remove(key)
    for moment in [*NOISY[6:9], NOISY[4]]:
        assert_same(store.get(store.put(moment)), moment)
    assert store.verify() == []


def test_recipes_are_kept_where_they_alone_are_over_the_budget(tmp_path):
    store = sg.SnapshotStore(tmp_path, disk_budget_bytes=2000)
    moments = walk(40)
    keys = [store.put(moment) for moment in moments]
    assert store.size > 2000
    for key, moment in zip(keys, moments, strict=True):
        found = store.get(key)
        assert_same(found, moment if found.state is not None else moment.drop_state())


def test_a_dropped_state_is_restored_by_replay(tmp_path):
    env = gym.make("tests/RandomWalk-v0")
    env.reset(seed=5)
    test_forking.play(env, [1, 2, 0])
    store = sg.SnapshotStore(tmp_path, disk_budget_bytes=500)
    key = store.put(env.snapshot())
    after = test_forking.play(env, [2, 2])
    for moment in NOISY:
        store.put(moment)
    assert store.get(key).state is None
    env.reset(seed=77)
    env.restore(store.get(key))
    assert test_forking.same(test_forking.play(env, [2, 2]), after)


def test_pins_of_another_process_count_until_it_is_no_more(tmp_path):
    budget = 5 * SIZE + 5000
    store = sg.SnapshotStore(tmp_path, disk_budget_bytes=budget)
    key = store.put(NOISY[0])
    program = (
        "import sys, sandboxgym as sg\n"
        "store = sg.SnapshotStore(sys.argv[1]); store.pin(sys.argv[2]); print('pinned', flush=True)"
        "\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), key],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout.readline() == "pinned\n"
        for moment in NOISY[1:]:
            store.put(moment)
        assert store.get(key).state is not None
        with pytest.raises(sg.SandboxGymError, match="another process"):
            store.remove(key)
        other.kill()
    for moment in [*NOISY[1:], *NOISY[1:]]:
        store.put(moment)
    assert store.get(key).state is None
    assert list((tmp_path / "pins").iterdir()) == []


def test_the_memory_before_the_disk_keeps_to_its_budget(tmp_path):
    store = sg.SnapshotStore(tmp_path, budget_bytes=3 * SIZE)
    keys = [store.put(moment) for moment in NOISY]
    cache = store._shelf.disk.cache
    assert 0 < cache.bytes <= 3 * SIZE
    assert cache.bytes == sum(len(blob.content) for blob in cache._blobs.values())
    for key, moment in zip(keys, NOISY, strict=True):
        assert_same(store.get(key), moment)
        assert cache.bytes <= 3 * SIZE


def test_many_packs_are_rewritten_only_where_something_is_dropped(tmp_path):
    moments = [with_noise(seed, 2**17) for seed in range(24)]
    store = sg.SnapshotStore(tmp_path, disk_budget_bytes=2**21)
    keys = [store.put(moment) for moment in moments]
    assert len(list((tmp_path / "packs").iterdir())) > 3
    assert store.size <= 2**21
    assert states(store).count("kept") >= 10
    for key, moment in zip(keys, moments, strict=True):
        found = sg.SnapshotStore(tmp_path).get(key)
        assert_same(found, moment if found.state is not None else moment.drop_state())
    assert store.verify() == []
