"""States that are held alive in the process, beside the data of a snapshot."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace

import pytest

import sandboxgym as sg
from sandboxgym.core import errors
from sandboxgym.core.digest import first_difference
from tests.core.worlds import RandomWalk


class Held:
    """What a `HeldWalk` keeps of itself."""

    def __init__(self, position: float, visits: list[int]) -> None:
        self.position = position
        self.visits = list(visits)
        self.at_hand = True


class HeldWalk(RandomWalk):
    """Its state can only be held; `get_state` is the number of visits, a witness."""

    state_is_witness = True
    wrong = False

    def get_state(self):
        return {"visits": len(self.visits)}

    def set_state(self, state):
        raise AssertionError("a witness is never set")

    def hold(self):
        return Held(self.position, self.visits)

    def resume(self, held):
        if not held.at_hand:
            return False
        self.position, self.visits = held.position, list(held.visits)
        if self.wrong:
            self.visits.append(1)
        return True


@pytest.fixture
def walk():
    env = HeldWalk()
    env.reset(seed=3)
    for action in (0, 1, 2):
        env.step(action)
    return env


def play(env, actions=(1, 2, 0)):
    return [list(env.step(a)) for a in actions]


def test_a_held_state_is_resumed_without_a_replay(walk):
    snap = walk.snapshot()
    future = play(walk)
    obs, info = walk.restore(snap)
    assert first_difference([obs, info], [snap.last.obs, snap.last.info]) is None
    assert first_difference(play(walk), future) is None
    assert "replayed_steps" not in walk.metrics


def test_forks_resume_what_is_held(walk):
    left, right = sg.fork(walk, 2)
    futures = [play(env) for env in (left, walk, right)]
    assert first_difference(futures[0], futures[1]) is None
    assert first_difference(futures[2], futures[1]) is None
    assert "replayed_steps" not in left.metrics


def test_what_is_no_longer_at_hand_is_replayed(walk):
    snap = walk.snapshot()
    future = play(walk)
    snap.held.at_hand = False
    walk.restore(snap)
    assert first_difference(play(walk), future) is None
    assert walk.metrics["replayed_steps"] == 3


def test_a_file_and_a_dropped_state_hold_nothing_and_are_replayed(walk):
    snap = walk.snapshot()
    future = play(walk)
    for copy in (sg.Snapshot.from_bytes(snap.to_bytes()), snap.drop_state()):
        assert copy.held is None
        walk.restore(copy)
        assert first_difference(play(walk), future) is None


def test_a_held_state_is_let_go_with_its_last_snapshot(walk):
    snap = walk.snapshot()
    gone = weakref.ref(snap.held)
    walk.restore(snap)
    del snap
    gc.collect()
    assert gone() is None


def test_a_resumed_state_that_is_not_the_snapshots_is_refused(walk):
    snap = walk.snapshot()
    walk.step(1)
    before = walk.state_digest()
    walk.wrong = True
    with pytest.raises(errors.RestoreMismatchError, match="resuming what was held"):
        walk.restore(snap)
    assert walk.state_digest() == before


def test_a_digest_holds_nothing(walk, monkeypatch):
    monkeypatch.setattr(HeldWalk, "hold", lambda self: pytest.fail("held for a digest"))
    walk.state_digest()


class Parcel(Held):
    """A held state that can travel."""

    def pack(self):
        return f"{self.position!r} {self.visits!r}".encode()


class Traveller(HeldWalk):
    def hold(self):
        return Parcel(self.position, self.visits)

    def unpack(self, packed):
        position, _, visits = packed.decode().partition(" ")
        if not visits:
            raise errors.SnapshotCorruptError("no parcel")
        return Parcel(float(position), json.loads(visits))


def test_a_held_state_that_can_travel_is_in_the_file():
    env, elsewhere = Traveller(), Traveller()
    env.reset(seed=3)
    for action in (0, 1, 2):
        env.step(action)
    snap = sg.Snapshot.from_bytes(env.snapshot().to_bytes())
    future = play(env)
    elsewhere.restore(sg.Snapshot.from_bytes(snap.to_bytes()))
    assert first_difference(play(elsewhere), future) is None
    assert "replayed_steps" not in elsewhere.metrics
    assert snap.drop_state().packed is None


def test_a_parcel_that_is_none_is_refused_and_changes_nothing():
    env = Traveller()
    env.reset(seed=3)
    env.step(1)
    before = env.state_digest()
    with pytest.raises(errors.SnapshotCorruptError, match="no parcel"):
        env.restore(replace(env.snapshot(), held=None, packed=b"nothing"))
    assert env.state_digest() == before
