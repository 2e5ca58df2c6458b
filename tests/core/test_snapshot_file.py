from __future__ import annotations

import hashlib
import struct
import subprocess
import sys
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import sandboxgym as sg
from sandboxgym.core import codec, errors
from tests.core.test_forking import play
from tests.core.worlds import RandomWalk

HEADER = struct.Struct(">8sHQQ16s")


@pytest.fixture(scope="module")
def snap():
    env = gym.make("tests/RandomWalk-v0")
    env.reset(seed=1, options={"start": 2.0})
    play(env, [1, 2])
    return env.snapshot()


def packed(body: bytes, *, version=1, raw_length=None) -> bytes:
    data = zstandard.compress(body)
    check = hashlib.blake2b(data, digest_size=16).digest()
    length = len(body) if raw_length is None else raw_length
    return HEADER.pack(b"SGSNAP\r\n", version, length, len(data), check) + data


def test_everything_survives_a_file(snap, tmp_path):
    snap.save(tmp_path / "s.snap")
    back = sg.Snapshot.load(tmp_path / "s.snap")
    assert snap.diff(back) == []
    assert (back.digest, back.parent, back.step, back.versions, back.created_by) == (
        (snap.digest, snap.parent, snap.step, snap.versions, snap.created_by)
    )
    assert back.recipe == snap.recipe
    assert [p.name for p in tmp_path.iterdir()] == ["s.snap"]


def test_another_process_restores_it(snap, tmp_path):
    snap.save(tmp_path / "s.snap")
    program = (
        "import sys, gymnasium as gym, sandboxgym as sg; import tests.core.test_forking\n"
        "env = gym.make('tests/RandomWalk-v0')\n"
        "obs, info = env.restore(sg.Snapshot.load(sys.argv[1]))\n"
        "print(repr(obs.tolist()), env.step(1)[1])"
    )
    out = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "s.snap")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    env = gym.make("tests/RandomWalk-v0")
    obs, _ = env.restore(snap)
    assert out == f"{obs.tolist()!r} {env.step(1)[1]}\n"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_flipped_bit_is_noticed(snap, data):
    raw = bytearray(snap.to_bytes())
    at = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[at // 8] ^= 1 << at % 8
    with pytest.raises((errors.SnapshotCorruptError, errors.SnapshotVersionError)):
        sg.Snapshot.from_bytes(bytes(raw))


@given(st.integers(0, 10_000))
def test_any_truncation_is_noticed(snap, n):
    raw = snap.to_bytes()
    with pytest.raises(errors.SnapshotCorruptError):
        sg.Snapshot.from_bytes(raw[: n % len(raw)])


def test_added_bytes_are_noticed(snap):
    with pytest.raises(errors.SnapshotCorruptError, match="should have"):
        sg.Snapshot.from_bytes(snap.to_bytes() + b"x")


def test_another_format_version_is_named():
    with pytest.raises(errors.SnapshotVersionError, match="version 2"):
        sg.Snapshot.from_bytes(packed(b"", version=2))


def test_a_bomb_is_refused_before_it_is_unpacked(snap, tmp_path):
    bomb = packed(b"\x00" * 2**20)
    with pytest.raises(errors.SnapshotCorruptError, match="over the limit"):
        sg.Snapshot.from_bytes(bomb, max_bytes=2**16)
    with pytest.raises(errors.SnapshotCorruptError, match="declares"):
        sg.Snapshot.from_bytes(packed(b"\x00" * 2**20, raw_length=100), max_bytes=2**16)
    (tmp_path / "large").write_bytes(b"\x00" * 2**17)
    with pytest.raises(errors.SnapshotCorruptError, match="over the limit"):
        sg.Snapshot.load(tmp_path / "large", max_bytes=2**16)


def test_content_that_is_not_its_digest_is_refused(snap):
    tree = codec.decode(zstandard.decompress(snap.to_bytes()[HEADER.size :]))
    tree["state"]["position"] += 1.0
    with pytest.raises(errors.SnapshotCorruptError, match="hashes to"):
        sg.Snapshot.from_bytes(packed(codec.encode(tree)))


@pytest.mark.parametrize("part", ["spec", "recipe", "last", "wrappers", "rng", "digest", "inner"])
@pytest.mark.parametrize("value", [None, 3, [], "x", {"id": 3}, np.zeros(3), np.float64(1)])
def test_a_part_that_is_missing_or_of_the_wrong_type_is_refused(snap, part, value):
    tree = codec.decode(zstandard.decompress(snap.to_bytes()[HEADER.size :]))
    if part == "inner" and value is None:
        del tree[part]
    else:
        tree[part] = value
    with pytest.raises(errors.SnapshotCorruptError):
        sg.Snapshot.from_bytes(packed(codec.encode(tree)))


@pytest.mark.parametrize("tree", [None, 3, [], "x", {}, np.zeros(3), np.float64(1)])
def test_a_body_that_is_no_snapshot_at_all_is_refused(tree):
    with pytest.raises(errors.SnapshotCorruptError):
        sg.Snapshot.from_bytes(packed(codec.encode(tree)))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_a_well_formed_file_with_any_body_is_refused(body):
    with pytest.raises(errors.SnapshotCorruptError):
        sg.Snapshot.from_bytes(packed(body))


@pytest.mark.parametrize(
    "state",
    [
        {"bit_generator": "MT19937", "state": {"key": np.zeros(624, np.uint32), "pos": 10**6}},
        {"bit_generator": "os.system", "state": {}},
        {"bit_generator": "PCG64"},
    ],
)
def test_a_generator_state_that_numpy_could_not_survive_is_refused(snap, state):
    bad = replace(snap, rng={**snap.rng, "np_random": state}, _digest=None)
    env = gym.make("tests/RandomWalk-v0")
    env.reset(seed=4)
    before = env.state_digest()
    with pytest.raises(errors.SnapshotError):
        env.restore(sg.Snapshot.from_bytes(bad.to_bytes()))
    assert env.state_digest() == before


def test_what_could_not_be_read_back_is_not_written(snap):
    vast = replace(snap, state=[0] * 600_000, _digest=None)
    with pytest.raises(errors.StateEncodingError, match="numpy arrays"):
        vast.to_bytes()


def test_a_refused_file_leaves_no_trace_in_the_environment(snap):
    env = RandomWalk()
    env.reset(seed=1)
    digest = env.state_digest()
    with pytest.raises(errors.SnapshotError):
        env.restore(sg.Snapshot.from_bytes(snap.to_bytes()))
    assert env.state_digest() == digest
