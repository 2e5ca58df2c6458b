"""A store does what a dict of snapshots would do, whatever one does to it in whatever order."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
)

import sandboxgym as sg
from tests.store.moments import assert_same, walk, with_noise, with_state

MOMENTS = [
    *walk(140)[::20],
    *walk(3, seed=2),
    *(with_noise(seed, 3000) for seed in range(6)),
    *(with_state(moment, {"shared": list(range(300))}) for moment in walk(4, seed=3)),
    walk(2, seed=4)[-1].drop_state(),
]
moments = st.sampled_from(MOMENTS)


class LikeADict(RuleBasedStateMachine):
    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="store-"))
        self.model: dict[str, sg.Snapshot] = {}
        self.pinned: set[str] = set()

    @initialize(
        on_disk=st.booleans(),
        budget=st.sampled_from([0, 6_000, 10**9]),
        disk_budget=st.sampled_from([20_000, 10**9, None]),
    )
    def open(self, on_disk, budget, disk_budget):
        self.directory = self.folder / "store" if on_disk else None
        self.limits = {"budget_bytes": budget, "disk_budget_bytes": disk_budget}
        self.may_drop = (disk_budget == 20_000) if on_disk else budget < 10**9
        self.store = sg.SnapshotStore(self.directory, **self.limits)
        self.other = sg.SnapshotStore(self.directory, **self.limits) if on_disk else self.store

    @rule(target=keys, moment=moments, other=st.booleans())
    def put(self, moment, other):
        key = (self.other if other else self.store).put(moment)
        if key not in self.model or moment.state is not None:
            self.model[key] = moment
        return key

    @rule(key=keys)
    def get(self, key):
        if key in self.model:
            self.compare(self.store.get(key), key)

    @rule(key=keys)
    def pin(self, key):
        if key in self.model and key not in self.pinned:
            self.store.pin(key)
            if self.store.get(key).state is not None:
                self.pinned.add(key)
            else:
                self.store.unpin(key)

    @rule(key=keys)
    def unpin(self, key):
        if key in self.pinned:
            self.store.unpin(key)
            self.pinned.remove(key)

    @rule(key=consumes(keys))
    def remove(self, key):
        if key in self.model and key not in self.pinned:
            self.other.remove(key)
            del self.model[key]

    @rule()
    def gc(self):
        self.store.gc()

    @rule()
    def open_again(self):
        if self.directory is not None:
            self.store.close()
            self.pinned.clear()
            self.store = sg.SnapshotStore(self.directory, **self.limits)

    @rule()
    def verify(self):
        assert self.store.verify() == []

    @rule()
    def read_everything_without_a_cache(self):
        if self.directory is not None:
            cold = sg.SnapshotStore(self.directory, budget_bytes=0)
            for key in self.model:
                self.compare(cold.get(key), key)

    @invariant()
    def has_the_same_keys(self):
        assert set(self.store) == set(self.model)
        assert len(self.other) == len(self.model)

    @invariant()
    def what_is_pinned_is_kept(self):
        states = {entry.key: entry.state for entry in self.store.ls()}
        assert all(states[key] == "kept" for key in self.pinned)

    def compare(self, found, key):
        expected = self.model[key]
        if expected.state is not None and found.state is None:
            assert self.may_drop
            expected = expected.drop_state()
        assert_same(found, expected)

    def teardown(self):
        if self.model:
            self.verify()
            for key in self.model:
                self.compare(self.store.get(key), key)
        self.store.close()
        shutil.rmtree(self.folder)


LikeADict.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLikeADict = LikeADict.TestCase
