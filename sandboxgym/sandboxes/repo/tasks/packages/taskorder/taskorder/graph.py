"""What has to be done before what.

Dependencies are a mapping from a task to the tasks that come before it. Tasks that are only named
as what comes before need no entry of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Dependencies = Mapping[str, Iterable[str]]


class CycleError(ValueError):
    """Tasks wait for each other; `cycle` has them, the first one twice."""

    def __init__(self, cycle: list[str]) -> None:
        super().__init__(" -> ".join(cycle))
        self.cycle = cycle


def all_tasks(dependencies: Dependencies) -> list[str]:
    """Every task that is named, sorted."""
    found = set(dependencies)
    for before in dependencies.values():
        found.update(before)
    return sorted(found)


def order(dependencies: Dependencies) -> list[str]:
    """All tasks, each after those that come before it; of those that may come next, by name.

    Raises:
        CycleError: There is no such order.
    """
    waiting = {task: set(dependencies.get(task, ())) for task in all_tasks(dependencies)}
    ordered: list[str] = []
    while waiting:
        ready = [task for task, before in waiting.items() if not before]
        if not ready:
            raise CycleError(find_cycle(dependencies))
        task = min(ready)
        ordered.append(task)
        del waiting[task]
        for before in waiting.values():
            before.discard(task)
    return ordered


def levels(dependencies: Dependencies) -> list[list[str]]:
    """Tasks in steps: those of a step can be done at the same time, each as early as it can be."""
    level: dict[str, int] = {}
    for task in order(dependencies):
        before = dependencies.get(task, ())
        level[task] = max((level[other] + 1 for other in before), default=0)
    steps: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for task in sorted(level):
        steps[level[task]].append(task)
    return steps


def ancestors(dependencies: Dependencies, task: str) -> set[str]:
    """Everything that has to be done before a task, directly or not."""
    found: set[str] = set()
    waiting = list(dependencies.get(task, ()))
    while waiting:
        other = waiting.pop()
        if other not in found:
            found.add(other)
            waiting.extend(dependencies.get(other, ()))
    return found


def find_cycle(dependencies: Dependencies) -> list[str]:
    """Tasks that wait for each other, the first one again at the end; empty where none do."""
    done: set[str] = set()

    def visit(task: str, path: list[str]) -> list[str]:
        if task in path:
            return [*path[path.index(task) :], task]
        if task in done:
            return []
        for other in sorted(dependencies.get(task, ())):
            cycle = visit(other, [*path, task])
            if cycle:
                return cycle
        done.add(task)
        return []

    for task in all_tasks(dependencies):
        cycle = visit(task, [])
        if cycle:
            return cycle
    return []


def reduced(dependencies: Dependencies) -> dict[str, list[str]]:
    """The same order with as few dependencies as possible: those that follow from others go."""
    kept: dict[str, list[str]] = {}
    for task in dependencies:
        direct = set(dependencies[task])
        implied: set[str] = set()
        for other in direct:
            implied |= ancestors(dependencies, other)
        kept[task] = sorted(direct - implied)
    return kept
