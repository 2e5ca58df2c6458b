"""Planning: a way to win from any state, by best-first search with a relaxed-plan heuristic.

The heuristic solves a simpler problem, in which nothing that was achieved is ever lost, and counts
the steps. Literals are achieved there one by one: a fact, or the absence of a fact that some
condition forbids. The steps of the simple solution that can be taken at once are tried first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from sandboxgym.sandboxes.text.grounding import Operator, World
from sandboxgym.sandboxes.text.successors import Successors, single_bits

MAX_WORK = 5_000_000


class Planner:
    """Finds plans in one world."""

    def __init__(self, world: World, successors: Successors) -> None:
        self._world = world
        self._successors = successors
        self._relaxation = _Relaxation(world)

    def plan(self, state: int) -> list[Operator] | None:
        """Return operators that lead to the goal, or None if none were found within the limits."""
        # A state is judged when its turn comes; until then its parent's judgement counts.
        truth = self._world.table.truth
        order = count()
        waiting: list[tuple[int, bool, int, _Node]] = [(0, False, next(order), _Node(state))]
        seen: set[int] = set()
        work = 0
        while waiting and work < MAX_WORK:
            node = heappop(waiting)[-1]
            if node.state & truth in seen:
                continue
            seen.add(node.state & truth)
            if self._world.won(node.state):
                return list(node.steps())
            work += self._relaxation.size
            relaxed = self._relaxation.solve(node.state)
            if relaxed is None:
                continue  # a dead end: not even the simpler problem has a solution
            for index in self._successors.view(node.state).applicable(node.state):
                if self._relaxation.is_useful(index):
                    operator = self._world.operators[index]
                    child = _Node(operator.apply(node.state), operator, node)
                    heappush(waiting, (len(relaxed), index not in relaxed, next(order), child))
        return None


@dataclass(frozen=True, slots=True)
class _Node:
    """A state of the search and how it was reached."""

    state: int
    operator: Operator | None = None
    parent: _Node | None = None

    def steps(self) -> Iterator[Operator]:
        """Yield the operators from the start to here."""
        path: list[Operator] = []
        node: _Node | None = self
        while node is not None and node.operator is not None:
            path.append(node.operator)
            node = node.parent
        return reversed(path)


@dataclass(frozen=True, slots=True)
class _Achiever:
    """Something that achieves literals once all its conditions are achieved."""

    operator: int
    """The index of the operator, or -1 if this only says how the parts of the goal make it up."""
    conditions: tuple[int, ...]
    achieves: tuple[int, ...]


class _Relaxation:
    """The simpler problem.

    Its literals are numbers: ``2 * bit`` for a fact, ``2 * bit + 1`` for the absence of that fact,
    and above those one for each group of the goal and one for the goal itself.
    """

    def __init__(self, world: World) -> None:
        self._first_group = 2 * world.table.width
        self._goal = self._first_group + len(world.goal)
        self._achievers = _relevant([*self._of_goal(world), *self._of_operators(world)], self._goal)
        self.size = 1 + len(self._achievers)
        self._useful = {achiever.operator for achiever in self._achievers}
        self._sizes = [len(achiever.conditions) for achiever in self._achievers]
        self._conditional_on: dict[int, list[int]] = {}
        for place, achiever in enumerate(self._achievers):
            for literal in achiever.conditions:
                self._conditional_on.setdefault(literal, []).append(place)

    def _of_goal(self, world: World) -> Iterator[_Achiever]:
        groups = range(self._first_group, self._goal)
        yield _Achiever(-1, tuple(groups), (self._goal,))
        for literal, group in zip(groups, world.goal, strict=True):
            for clause in group:
                yield _Achiever(-1, _literals(clause.needs, clause.forbids), (literal,))

    def _of_operators(self, world: World) -> Iterator[_Achiever]:
        for operator in world.operators:
            needs, forbids = operator.condition.needs, operator.condition.forbids
            achieves = _literals(operator.adds, operator.deletes)
            yield _Achiever(operator.index, _literals(needs, forbids), achieves)
            for conditional in operator.conditionals:
                conditions = _literals(
                    needs | conditional.condition.needs, forbids | conditional.condition.forbids
                )
                achieves = _literals(conditional.adds, conditional.deletes)
                yield _Achiever(operator.index, conditions, achieves)

    def is_useful(self, operator: int) -> bool:
        """Whether an operator can contribute to the goal, directly or not."""
        return operator in self._useful

    def solve(self, state: int) -> set[int] | None:
        """Return the operators of a solution from a state, or None if there is none."""
        supporters = self._support(state)
        if self._goal not in supporters:
            return None
        operators: set[int] = set()
        waiting = [self._goal]
        reached: set[int] = set()
        while waiting:
            literal = waiting.pop()
            place = supporters[literal]
            if literal not in reached and place is not None:
                reached.add(literal)
                operators.add(self._achievers[place].operator)
                waiting.extend(self._achievers[place].conditions)
        return operators - {-1}

    def _support(self, state: int) -> dict[int, int | None]:
        """Return what achieves each literal at the least cost, until the goal is achieved.

        The cost of an achiever is one more than its conditions cost together. What holds in the
        state costs nothing, and nothing achieves it.
        """
        costs: dict[int, int] = {}
        supporters: dict[int, int | None] = {}
        missing = self._sizes.copy()
        totals = [0] * len(missing)
        queue: list[tuple[int, int]] = []

        def achieve(literal: int, cost: int, place: int | None) -> None:
            if cost < costs.get(literal, cost + 1):
                costs[literal] = cost
                supporters[literal] = place
                heappush(queue, (cost, literal))

        for literal in self._conditional_on:
            if literal < self._first_group and state >> (literal >> 1) & 1 != literal & 1:
                achieve(literal, 0, None)
        for place, size in enumerate(self._sizes):
            if not size:
                for literal in self._achievers[place].achieves:
                    achieve(literal, 1, place)
        while queue:
            cost, literal = heappop(queue)
            if literal == self._goal:
                break
            if cost > costs[literal]:
                continue
            for place in self._conditional_on.get(literal, ()):
                missing[place] -= 1
                totals[place] += cost
                if not missing[place]:
                    for achieved in self._achievers[place].achieves:
                        achieve(achieved, totals[place] + 1, place)
        return supporters


def _relevant(achievers: list[_Achiever], goal: int) -> list[_Achiever]:
    """Return the achievers that the goal can need, each with only what can be needed of it."""
    by_literal: dict[int, list[_Achiever]] = {}
    for achiever in achievers:
        for literal in achiever.achieves:
            by_literal.setdefault(literal, []).append(achiever)
    needed = {goal}
    waiting = [goal]
    while waiting:
        for achiever in by_literal.get(waiting.pop(), ()):
            for literal in achiever.conditions:
                if literal not in needed:
                    needed.add(literal)
                    waiting.append(literal)
    trimmed = [
        _Achiever(each.operator, each.conditions, tuple([a for a in each.achieves if a in needed]))
        for each in achievers
    ]
    return [achiever for achiever in trimmed if achiever.achieves]


def _literals(true: int, false: int) -> tuple[int, ...]:
    positive = [2 * bit.bit_length() - 2 for bit in single_bits(true)]
    negative = [2 * bit.bit_length() - 1 for bit in single_bits(false & ~true)]
    return (*positive, *negative)
