"""Real snapshots and packs that the fuzzers start from."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import gymnasium as gym
import numpy as np

import sandboxgym as sg
from tests.store.moments import walk, with_state

ODD_VALUES = {
    "tuple": (1, (2.5, "x")),
    "big": -(2**100),
    1: {2: b"keyed by int"},
    "text": np.array(["ab", "c"]),
    "scalar": np.float32(1.5),
    "flags": np.array([True, False]),
    "nan": float("nan"),
}


@cache
def snapshots() -> tuple[sg.Snapshot, ...]:
    """Of a text world, a walk with noise, a replayed environment, arrays and odd values."""
    text = gym.make("sandboxgym/ALFWorld-v0", source="synthetic")
    text.reset(seed=7)
    text.step("look")
    replayed = sg.forkable(gym.make("CartPole-v1"), mechanism="replay")
    replayed.reset(seed=1)
    replayed.step(1)
    start = walk(0)[0]
    arrays = {
        str(dtype): np.arange(12).astype(dtype).reshape(3, 4)
        for dtype in ("u1", "i8", "f4", "c8", "<U3", "S2", ">i2", "?")
    }
    seeds = (
        sg.snapshot(text),
        sg.snapshot(replayed),
        *walk(3)[2:],
        walk(70)[-1],
        with_state(start, arrays),
        with_state(start, ODD_VALUES),
        start.drop_state(),
    )
    text.close()
    replayed.close()
    return tuple(replace(seed, held=None) for seed in seeds)


@cache
def files() -> tuple[bytes, ...]:
    """Snapshot files."""
    return tuple(seed.to_bytes() for seed in snapshots())


@cache
def packs() -> tuple[bytes, ...]:
    """Packs of small stores: of each snapshot, of all of them, of one with dropped states."""
    groups = [[seed] for seed in snapshots()] + [list(snapshots()), walk(5)]
    return (*(_pack(group, None) for group in groups), _pack(walk(5), 1000))


def _pack(group: list[sg.Snapshot], budget: int | None) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        store = sg.SnapshotStore(folder, disk_budget_bytes=budget)
        for seed in group:
            store.put(seed)
        (pack,) = (Path(folder) / "packs").iterdir()
        return pack.read_bytes()
