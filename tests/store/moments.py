"""Snapshots for the tests of the store, and what it means that one came back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import sandboxgym as sg
from sandboxgym.core.digest import first_difference
from tests.core.worlds import RandomWalk


def walk(steps: int, seed: int = 1, **kwargs) -> list[sg.Snapshot]:
    """A snapshot before each step of a random walk, and one after the last."""
    env = RandomWalk(**kwargs)
    env.reset(seed=seed)
    moments = [env.snapshot()]
    for step in range(steps):
        env.step(step % 3)
        moments.append(env.snapshot())
    return moments


def with_state(moment: sg.Snapshot, state) -> sg.Snapshot:
    return replace(moment, state=state, _digest=None)


def with_noise(seed: int, size: int = 10_000) -> sg.Snapshot:
    """A snapshot whose state cannot be compressed."""
    noise = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    return with_state(walk(0, seed)[0], {"noise": noise})


def assert_same(found: sg.Snapshot, stored: sg.Snapshot) -> None:
    """All that a file holds came back, and `diff` and `digest` say so."""
    assert found.digest == stored.digest
    assert found.diff(stored) == []
    assert first_difference(found.as_tree(), stored.as_tree()) is None
