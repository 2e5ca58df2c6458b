from __future__ import annotations

import gc
import random
import subprocess
import weakref
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings

import sandboxgym as sg
from sandboxgym.core import errors
from sandboxgym.store.pieces import BLOCK
from tests.core.test_codec import trees
from tests.store.moments import assert_same, walk, with_noise, with_state


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path):
    with sg.SnapshotStore(tmp_path / "store" if request.param == "disk" else None) as store:
        yield store


@pytest.mark.parametrize("cached", [True, False])
def test_every_snapshot_of_a_long_episode_reads_back_exactly(tmp_path, cached):
    moments = walk(3 * BLOCK)
    store = sg.SnapshotStore(tmp_path, budget_bytes=2**20 if cached else 0)
    keys = [store.put(moment) for moment in moments]
    assert len(set(keys)) == len(store) == len(moments)
    for key, moment in zip(keys, moments, strict=True):
        assert_same(store.get(key), moment)
        assert_same(sg.SnapshotStore(tmp_path).get(key), moment)
    assert store.verify() == []


@settings(max_examples=60, deadline=None)
@given(state=trees.filter(lambda tree: tree is not None), info=trees)
def test_any_plain_data_reads_back_exactly(state, info):
    start = walk(0)[0]
    first = with_state(start, state)
    second = replace(first, last=replace(start.last, info={"x": info}))
    with sg.SnapshotStore() as store:
        for moment in (first, second):
            assert_same(store.get(store.put(moment)), moment)


def test_a_restored_environment_continues_as_the_original(store):
    env = sg.forkable(gym.make("CartPole-v1"), mechanism="replay")
    env.reset(seed=3)
    for action in (0, 1, 0):
        env.step(action)
    key = store.put(sg.snapshot(env))
    after = env.step(1)[0]
    env.reset(seed=9)
    sg.restore(env, store.get(key))
    np.testing.assert_array_equal(env.step(1)[0], after)


def test_a_thousand_snapshots_of_an_alfworld_episode_take_little_room(tmp_path):
    env = gym.make("sandboxgym/ALFWorld-v0", source="synthetic", max_episode_steps=2000)
    _, info = env.reset(seed=7)
    dice = random.Random(0)
    moments = [env.snapshot()]
    while len(moments) < 1000:
        *_, ended, cut, info = env.step(dice.choice(info["admissible_commands"]))
        if ended or cut:
            env.restore(moments[dice.randrange(len(moments))])
            info = moments[-1].last.info
            continue
        moments.append(env.snapshot())
    store = sg.SnapshotStore(tmp_path)
    keys = [store.put(moment) for moment in moments]
    for key, moment in zip(keys, moments, strict=True):
        assert_same(store.get(key), moment)
    used = subprocess.run(["du", "-sB1", tmp_path], capture_output=True, text=True, check=True)
    assert len(set(keys)) == 1000
    assert int(used.stdout.split()[0]) < 1_200_000 / 2


def test_a_large_state_that_changes_a_little_takes_little(tmp_path):
    dice = np.random.default_rng(0)
    memory = dice.integers(0, 256, 2**20, np.uint8)
    store = sg.SnapshotStore(tmp_path)
    moments = []
    for _ in range(5):
        memory[dice.integers(0, memory.size, 20)] = 1
        moments.append(with_state(walk(0)[0], {"ram": memory.copy()}))
    keys = [store.put(moment) for moment in moments]
    assert store.size < 1.2 * memory.size
    for key, moment in zip(keys, moments, strict=True):
        assert_same(sg.SnapshotStore(tmp_path).get(key), moment)


def test_putting_it_again_adds_nothing(store):
    moments = walk(5)
    keys = [store.put(moment) for moment in moments]
    size = store.size
    assert [store.put(store.get(key)) for key in keys] == keys
    assert [store.put(moment) for moment in moments] == keys
    assert store.size == size


def test_the_key_is_the_same_in_memory_and_on_disk_and_without_the_state(tmp_path):
    moment = walk(3)[-1]
    key = sg.SnapshotStore().put(moment)
    store = sg.SnapshotStore(tmp_path)
    assert store.put(moment.drop_state()) == key
    assert store.get(key).state is None
    assert store.ls()[0].state == "none"
    assert store.put(moment) == key
    assert store.ls()[0].state == "kept"
    assert_same(store.get(key), moment)


def test_equal_futures_seen_differently_are_two_snapshots(store):
    one = walk(2)[-1]
    other = replace(one, last=replace(one.last, obs=one.last.obs + 1))
    assert one.digest == other.digest
    first, second = store.put(one), store.put(other)
    assert first != second
    assert_same(store.get(first), one)
    assert_same(store.get(second), other)


def test_what_is_held_alive_stays_in_memory_until_the_store_is_closed(tmp_path):
    class Template:
        pass

    held = Template()
    alive = weakref.ref(held)
    store = sg.SnapshotStore(tmp_path)
    key = store.put(replace(walk(1)[-1], held=held))
    assert store.get(key).held is held
    assert sg.SnapshotStore(tmp_path).get(key).held is None
    del held
    gc.collect()
    assert alive() is not None
    store.close()
    gc.collect()
    assert alive() is None


def test_what_is_removed_is_gone_and_its_room_is_freed(store):
    moments = [with_noise(seed) for seed in range(6)]
    keys = [store.put(moment) for moment in moments]
    held = store.size
    for key in keys[:3]:
        store.remove(key)
    store.gc()
    assert store.size < 0.6 * held
    assert list(store) == keys[3:]
    for key in keys[:3]:
        assert key not in store
        with pytest.raises(errors.SnapshotNotFoundError, match=key):
            store.get(key)
    for key, moment in zip(keys[3:], moments[3:], strict=True):
        assert_same(store.get(key), moment)
    assert store.put(moments[0]) == keys[0]
    assert_same(store.get(keys[0]), moments[0])
    assert store.verify() == []


def test_removing_leaves_what_others_share(store):
    moments = walk(2 * BLOCK + 5)
    keys = [store.put(moment) for moment in moments[-6:]]
    for key in keys[:-1]:
        store.remove(key)
    store.gc()
    assert_same(store.get(keys[-1]), moments[-1])
    assert store.verify() == []


def test_a_pinned_snapshot_is_not_removed(store):
    key = store.put(walk(1)[-1])
    store.pin(key)
    store.pin(key)
    store.unpin(key)
    assert store.ls()[0].pinned
    with pytest.raises(errors.StoreError, match="pinned"):
        store.remove(key)
    store.unpin(key)
    with pytest.raises(errors.StoreError, match="not pinned"):
        store.unpin(key)
    store.remove(key)
    assert len(store) == 0


@pytest.mark.parametrize("key", ["", "00", "zz" * 16, "0" * 32, None, 3, b"x"])
def test_a_key_that_is_none_is_not_found(store, key):
    assert key not in store
    for call in (store.get, store.pin, store.unpin, store.remove):
        with pytest.raises(errors.SnapshotNotFoundError):
            call(key)


def test_what_could_not_be_read_back_is_not_stored(store):
    start = walk(0)[0]
    small = sg.SnapshotStore(store.directory, max_bytes=5000)
    with pytest.raises(errors.StateEncodingError, match="limit of 5000"):
        small.put(with_noise(1))
    with pytest.raises(errors.StateEncodingError, match="numpy arrays"):
        store.put(with_state(start, [0] * 600_000))
    with pytest.raises(errors.StateEncodingError, match="plain data"):
        store.put(with_state(start, {"x": object()}))
    assert len(store) == 0


def test_ls_tells_what_is_there(store):
    moments = walk(2)
    keys = [store.put(moment) for moment in moments]
    entries = store.ls()
    assert [entry.key for entry in entries] == keys == list(store)
    assert [entry.step for entry in entries] == [0, 1, 2]
    assert [entry.digest for entry in entries] == [moment.digest for moment in moments]
    assert entries[0].spec == "tests.core.worlds:RandomWalk"


def test_a_folder_that_is_no_store_is_refused(tmp_path):
    with pytest.raises(errors.StoreError, match="not a snapshot store"):
        sg.SnapshotStore(tmp_path, create=False)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.StoreError, match="making the store"):
        sg.SnapshotStore(tmp_path / "file")
