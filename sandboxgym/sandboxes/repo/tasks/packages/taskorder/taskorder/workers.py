"""Who does what."""

from __future__ import annotations

from collections.abc import Mapping

from taskorder.graph import Dependencies, order


def balance(durations: Mapping[str, int], workers: int) -> list[list[str]]:
    """Share independent tasks out, the longest first, each to who has least to do.

    Args:
        durations: How long each task takes. Of equally long ones the first name comes first.
        workers: How many share them.

    Raises:
        ValueError: There is nobody.
    """
    if workers < 1:
        raise ValueError("somebody has to do it")
    shares: list[list[str]] = [[] for _ in range(workers)]
    loads = [0] * workers
    for task in sorted(durations, key=lambda name: (-durations[name], name)):
        worker = loads.index(min(loads))
        shares[worker].append(task)
        loads[worker] += durations[task]
    return shares


def assign(
    dependencies: Dependencies, durations: Mapping[str, int], workers: int = 1
) -> list[tuple[str, int, int]]:
    """A time table for a few workers: (task, worker, start), in the order of `order`.

    Each task goes to the worker who can start it first, and of those to the first.
    """
    if workers < 1:
        raise ValueError("somebody has to do it")
    free = [0] * workers
    ends: dict[str, int] = {}
    table = []
    for task in order(dependencies):
        ready = max((ends[other] for other in dependencies.get(task, ())), default=0)
        worker = min(range(workers), key=lambda number: max(free[number], ready))
        start = max(free[worker], ready)
        ends[task] = start + durations.get(task, 0)
        free[worker] = ends[task]
        table.append((task, worker, start))
    return table
