"""A process that puts snapshots into a store: python -m tests.store.writer FOLDER SEED COUNT BUDGET

It prints the key of each snapshot after `put` has returned it. `SEED` says which snapshots.
"""

from __future__ import annotations

import sys

import sandboxgym as sg
from tests.store.moments import walk, with_noise


def moments_of(seed: int, count: int) -> list[sg.Snapshot]:
    """Half of an episode, and half of them large and without likeness."""
    steps = walk(count // 2, seed)
    return [m for i, step in enumerate(steps) for m in (step, with_noise(seed * 1000 + i, 4000))]


def main() -> None:
    folder, seed, count, budget = sys.argv[1], *map(int, sys.argv[2:])
    moments = moments_of(seed, count)
    store = sg.SnapshotStore(folder, disk_budget_bytes=budget)
    print("ready", flush=True)
    for moment in moments:
        print(store.put(moment), flush=True)


if __name__ == "__main__":
    main()
