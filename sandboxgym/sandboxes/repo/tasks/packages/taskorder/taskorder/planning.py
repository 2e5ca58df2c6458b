"""When tasks can start, and when they have to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from taskorder.graph import Dependencies, order


@dataclass(frozen=True)
class Planned:
    """When a task can be done.

    Attributes:
        start: The earliest start.
        end: The end, if it starts then.
        slack: How much later it may start without making the whole take longer.
    """

    start: int
    end: int
    slack: int


def plan(dependencies: Dependencies, durations: Mapping[str, int]) -> dict[str, Planned]:
    """When each task can be done, if enough people are there.

    Args:
        dependencies: What has to be done before what.
        durations: How long each task takes; one without an entry takes no time.

    Raises:
        CycleError: Tasks wait for each other.
    """
    ordered = order({**dict.fromkeys(durations, ()), **dependencies})
    starts: dict[str, int] = {}
    ends: dict[str, int] = {}
    for task in ordered:
        starts[task] = max((ends[other] for other in dependencies.get(task, ())), default=0)
        ends[task] = starts[task] + durations.get(task, 0)
    finish = max(ends.values(), default=0)
    latest = dict.fromkeys(ordered, finish)
    for task in reversed(ordered):
        must_start = latest[task] - durations.get(task, 0)
        for other in dependencies.get(task, ()):
            latest[other] = min(latest[other], must_start)
    return {task: Planned(starts[task], ends[task], latest[task] - ends[task]) for task in ordered}


def critical_path(dependencies: Dependencies, durations: Mapping[str, int]) -> list[str]:
    """Tasks one after another that decide how long the whole takes.

    Of several that do, it is the one with the first name.
    """
    planned = plan(dependencies, durations)
    if not planned:
        return []
    finish = max(task.end for task in planned.values())
    last = min(name for name, task in planned.items() if task.end == finish)
    path = [last]
    while planned[path[-1]].start > 0:
        start = planned[path[-1]].start
        before = dependencies.get(path[-1], ())
        path.append(min(name for name in before if planned[name].end == start))
    path.reverse()
    return path
