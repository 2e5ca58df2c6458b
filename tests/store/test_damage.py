from __future__ import annotations

import contextlib
import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sandboxgym as sg
from sandboxgym.core import errors
from sandboxgym.core.digest import first_difference
from sandboxgym.store.blob import Kind
from sandboxgym.store.pieces import BLOCK
from tests.store.moments import assert_same, walk, with_noise

MOMENTS = [*walk(BLOCK + 3)[-3:], with_noise(1, 3000), with_noise(2, 3000)]


def fill(folder):
    store = sg.SnapshotStore(folder)
    return store, [store.put(moment) for moment in MOMENTS]


def pack_of(folder):
    (pack,) = (folder / "packs").iterdir()
    return pack


def flip(path, offset, bit=0):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1 << bit
    path.write_bytes(data)


def place_of(store, key, kind):
    """Where in its pack the content of a snapshot's blob of this kind begins, and its name."""
    index = store._shelf.disk.index
    frame = bytes.fromhex(key)
    blob = {Kind.STATE: index.state_of(frame), Kind.FRAME: frame}.get(kind)
    if kind is Kind.ACTIONS:
        blob = index.blobs[frame].header.links[0]
    place = index.blobs[blob]
    return place.offset + place.header.length, f"{kind.name} {blob.hex()}"


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("intact")
    fill(folder)
    return folder


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_no_flipped_bit_anywhere_is_served_and_each_is_named(intact, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("flipped")
    shutil.copytree(intact, folder, dirs_exist_ok=True)
    pack = pack_of(folder)
    flip(pack, data.draw(st.integers(0, pack.stat().st_size - 1)), data.draw(st.integers(0, 7)))
    store = sg.SnapshotStore(folder, budget_bytes=0)
    faults = store.verify()
    if not faults:  # zstd has bits that mean nothing
        assert len(store) == len(MOMENTS)
    assert all(fault.name and fault.reason for fault in faults)
    unreadable = {key for fault in faults for key in fault.keys}
    by_tree = [moment.as_tree() for moment in MOMENTS]
    for key in store:
        if key in unreadable:
            with pytest.raises(errors.StoreCorruptError):
                store.get(key)
        else:
            found = store.get(key).as_tree()
            assert any(first_difference(found, tree) is None for tree in by_tree)
    store.gc(drop_corrupt=True)
    assert store.verify() == []
    for key in store:
        store.get(key)
    shutil.rmtree(folder)


@pytest.mark.parametrize("kind", [Kind.STATE, Kind.FRAME, Kind.ACTIONS])
def test_a_corrupt_blob_is_named_with_the_snapshots_that_need_it(tmp_path, kind):
    store, keys = fill(tmp_path)
    last_of_walk = keys[2]
    offset, name = place_of(store, last_of_walk, kind)
    flip(pack_of(tmp_path), offset + 20)
    store = sg.SnapshotStore(tmp_path)
    (fault,) = [fault for fault in store.verify() if fault.name == name]
    assert last_of_walk in fault.keys
    with pytest.raises(errors.StoreCorruptError, match=name) as raised:
        store.get(last_of_walk)
    assert "put the snapshot again" in str(raised.value)


def test_a_corrupt_state_is_dropped_down_to_its_recipe_on_request(tmp_path):
    store, keys = fill(tmp_path)
    offset, _ = place_of(store, keys[3], Kind.STATE)
    flip(pack_of(tmp_path), offset + 20)
    store = sg.SnapshotStore(tmp_path)
    store.gc(drop_corrupt=True)
    assert store.verify() == []
    assert_same(store.get(keys[3]), MOMENTS[3].drop_state())
    for key, moment in zip(keys, MOMENTS, strict=True):
        if key != keys[3]:
            assert_same(sg.SnapshotStore(tmp_path).get(key), moment)
    assert store.put(MOMENTS[3]) == keys[3]
    assert_same(store.get(keys[3]), MOMENTS[3])


def test_putting_a_snapshot_again_heals_it(tmp_path):
    store, keys = fill(tmp_path)
    for kind in (Kind.STATE, Kind.FRAME):
        offset, _ = place_of(store, keys[4], kind)
        flip(pack_of(tmp_path), offset + 20)
    store = sg.SnapshotStore(tmp_path)
    assert len(store.verify()) == 2
    with pytest.raises(errors.StoreCorruptError):
        store.get(keys[4])
    store.put(MOMENTS[4])
    assert_same(store.get(keys[4]), MOMENTS[4])
    assert_same(sg.SnapshotStore(tmp_path).get(keys[4]), MOMENTS[4])
    assert store.verify() == []


def test_damage_between_records_is_named_and_all_other_snapshots_stay(tmp_path):
    store, keys = fill(tmp_path)
    offset, _ = place_of(store, keys[3], Kind.STATE)
    flip(pack_of(tmp_path), offset - 10)  # in the header
    store = sg.SnapshotStore(tmp_path)
    names = [fault.name for fault in store.verify()]
    assert str(pack_of(tmp_path)) in names
    with pytest.raises(errors.StoreCorruptError, match="missing"):
        store.get(keys[3])
    with pytest.raises(errors.StoreCorruptError, match="drop-corrupt"):
        store.gc()
    for key, moment in zip(keys, MOMENTS, strict=True):
        if key != keys[3]:
            assert_same(store.get(key), moment)
    store.gc(drop_corrupt=True)
    assert store.verify() == []
    assert_same(store.get(keys[3]), MOMENTS[3].drop_state())


@pytest.mark.parametrize("loss", ["gone", "cut", "empty"])
def test_a_closed_pack_that_is_lost_or_cut_is_named_and_what_is_left_is_kept(tmp_path, loss):
    store = sg.SnapshotStore(tmp_path, disk_budget_bytes=2**22)
    moments = [with_noise(seed, 2**17) for seed in range(12)]
    keys = [store.put(moment) for moment in moments]
    first, *rest = sorted((tmp_path / "packs").iterdir())
    assert rest
    if loss == "gone":
        first.unlink()
    else:
        with first.open("r+b") as file:
            file.truncate(0 if loss == "empty" else 2**17 + 3000)
    store = sg.SnapshotStore(tmp_path)
    assert str(first) in [fault.name for fault in store.verify()]
    readable = 0
    for key, moment in zip(keys, moments, strict=True):
        with contextlib.suppress(errors.StoreCorruptError, errors.SnapshotNotFoundError):
            assert_same(store.get(key), moment)
            readable += 1
    assert 0 < readable < len(keys)
    store.gc(drop_corrupt=True)
    assert store.verify() == []
    assert [entry.state for entry in store.ls()].count("kept") == readable
    for moment in moments:
        assert_same(store.get(store.put(moment)), moment)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": 1}',
        '{"format": 1, "next": 1, "packs": [{"number": 1}]}',
        '{"format": 1, "next": 3, "packs": [{"number": 1}, {"number": 2}]}',
        '{"format": 1, "next": 3, "packs": [{"number": 1, "bytes": -1}, {"number": 2}]}',
        '{"format": 1, "next": 3, "packs": [{"number": 1, "name": "../x"}]}',
        '{"format": 1, "next": 1e999, "packs": []}',
        "[" * 100_000,
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path, text):
    fill(tmp_path)
    (tmp_path / "store.json").write_text(text)
    with pytest.raises(errors.StoreCorruptError, match=r"store\.json is damaged"):
        sg.SnapshotStore(tmp_path)


def test_a_store_without_its_manifest_is_not_taken_for_an_empty_one(tmp_path):
    fill(tmp_path)
    (tmp_path / "store.json").unlink()
    with pytest.raises(errors.StoreCorruptError, match="packs but no"):
        sg.SnapshotStore(tmp_path)


def test_a_store_of_another_format_is_refused_by_its_number(tmp_path):
    fill(tmp_path)
    manifest = json.loads((tmp_path / "store.json").read_text())
    (tmp_path / "store.json").write_text(json.dumps(manifest | {"format": 7}))
    with pytest.raises(errors.StoreError, match="format 7"):
        sg.SnapshotStore(tmp_path)


def test_what_is_larger_than_a_reader_allows_is_not_taken_for_damage(tmp_path):
    key = sg.SnapshotStore(tmp_path).put(with_noise(1, 20_000))
    careful = sg.SnapshotStore(tmp_path, max_bytes=10_000)
    for call in (lambda: careful.get(key), careful.verify, lambda: careful.gc(drop_corrupt=True)):
        with pytest.raises(errors.StoreError, match="larger max_bytes") as raised:
            call()
        assert not isinstance(raised.value, errors.StoreCorruptError)
    assert_same(sg.SnapshotStore(tmp_path).get(key), with_noise(1, 20_000))
