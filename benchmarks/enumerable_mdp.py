"""A decision process small enough to know everything about it, and trees sampled from it.

The gradient of the expected return is computed exactly by dynamic programming. Sampling a tree is
a program that asks a `Chance` for every random choice; run with `Dice` it draws one tree, run
through `outcomes` it yields every tree there is, with its probability. So the expectation of any
estimator is a finite sum and its bias is known to rounding error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sandboxgym_learners.branching import BranchRule, EntropyTrigger
from sandboxgym_learners.tree import Group, Segment, Step

Array = NDArray[np.float64]
T = TypeVar("T")


class Chance(Protocol):
    """Where random choices come from."""

    def draw(self, probabilities: Sequence[float]) -> int:
        """Pick an index with the given probabilities."""
        ...


@dataclass(slots=True)
class Dice:
    """Random choices from a generator."""

    rng: np.random.Generator

    def draw(self, probabilities: Sequence[float]) -> int:
        """Pick an index with the given probabilities."""
        if len(probabilities) == 1:
            return 0
        remaining = self.rng.random()
        for index, probability in enumerate(probabilities):
            remaining -= probability
            if remaining < 0:
                return index
        return int(np.argmax(probabilities))


class _Script:
    """Choices that follow a given beginning, then take the first possible one each time."""

    def __init__(self, beginning: list[int]) -> None:
        self._beginning = beginning
        self._taken: list[tuple[int, Sequence[float]]] = []
        self.probability = 1.0

    def draw(self, probabilities: Sequence[float]) -> int:
        position = len(self._taken)
        if position < len(self._beginning):
            index = self._beginning[position]
        else:
            index = _next_possible(probabilities, 0)
        self._taken.append((index, probabilities))
        self.probability *= probabilities[index]
        return index

    def next_beginning(self) -> list[int] | None:
        """The beginning that leads to the next outcome; None after the last one."""
        while self._taken:
            index, probabilities = self._taken.pop()
            following = _next_possible(probabilities, index + 1)
            if following < len(probabilities):
                return [index for index, _ in self._taken] + [following]
        return None


def _next_possible(probabilities: Sequence[float], start: int) -> int:
    while start < len(probabilities) and probabilities[start] == 0:
        start += 1
    return start


def outcomes(program: Callable[[Chance], T]) -> Iterator[tuple[float, T]]:
    """Run the program once for every sequence of choices; yield probability and result."""
    beginning: list[int] | None = []
    while beginning is not None:
        script = _Script(beginning)
        result = program(script)
        yield script.probability, result
        beginning = script.next_beginning()


class Outcome(NamedTuple):
    """One way in which an action can turn out."""

    probability: float
    reward: float
    state: int


@dataclass(frozen=True, slots=True)
class EnumerableMDP:
    """A finite decision process that starts in state 0.

    Attributes:
        table: For each state and action the ways in which it can turn out. A state without
            actions ends the episode.
        horizon: Number of decisions after which every episode ends.
    """

    table: tuple[tuple[tuple[Outcome, ...], ...], ...]
    horizon: int

    def ends(self, state: int, depth: int) -> bool:
        """Whether the episode is over in this state after `depth` decisions."""
        return depth >= self.horizon or not self.table[state]


class TabularPolicy:
    """Softmax over one row of logits per state."""

    def __init__(self, logits: Array) -> None:
        self.logits = logits
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
        self.matrix: Array = exponents / exponents.sum(axis=1, keepdims=True)
        self.probabilities: list[list[float]] = self.matrix.tolist()
        self.entropies = [-sum(p * math.log(p) for p in row if p) for row in self.probabilities]

    def score(self, state: int, action: int) -> Array:
        """∇ log π(action | state) with respect to the logits of that state."""
        gradient: Array = -self.matrix[state]
        gradient[action] += 1
        return gradient


def random_mdp(
    rng: np.random.Generator,
    *,
    states: int = 4,
    actions: int = 2,
    horizon: int = 3,
    noisy: float = 0.15,
    terminal: float = 0.15,
) -> EnumerableMDP:
    """A process with random successors and rewards.

    Args:
        rng: Where the randomness comes from.
        states: Number of states.
        actions: Number of actions in every state that has any.
        horizon: Length of the longest episode.
        noisy: Share of the actions that turn out in one of two ways, not one.
        terminal: Share of the states, the first apart, that end the episode.
    """

    def turns_out() -> tuple[Outcome, ...]:
        chance = float(rng.uniform(0.2, 0.8))
        split = [chance, 1 - chance] if rng.random() < noisy else [1.0]
        return tuple(Outcome(p, float(rng.normal()), int(rng.integers(states))) for p in split)

    table = [
        () if state > 0 and rng.random() < terminal else tuple(turns_out() for _ in range(actions))
        for state in range(states)
    ]
    return EnumerableMDP(tuple(table), horizon)


def values(mdp: EnumerableMDP, policy: TabularPolicy) -> tuple[Array, Array]:
    """V[depth, state] and Q[depth, state, action] of the policy, by dynamic programming."""
    v = np.zeros((mdp.horizon + 1, len(mdp.table)))
    q = np.zeros((mdp.horizon, *policy.matrix.shape))
    for depth in reversed(range(mdp.horizon)):
        for state, actions in enumerate(mdp.table):
            for action, turns in enumerate(actions):
                q[depth, state, action] = sum(
                    turn.probability * (turn.reward + v[depth + 1, turn.state]) for turn in turns
                )
            if actions:
                v[depth, state] = policy.matrix[state] @ q[depth, state]
    return v, q


def exact_gradient(mdp: EnumerableMDP, policy: TabularPolicy) -> Array:
    """∇ E[return] with respect to the logits, by the policy gradient theorem."""
    v, q = values(mdp, policy)
    reach = np.zeros(len(mdp.table))
    reach[0] = 1
    gradient = np.zeros_like(policy.matrix)
    for depth in range(mdp.horizon):
        following = np.zeros_like(reach)
        for state, actions in enumerate(mdp.table):
            for action, turns in enumerate(actions):
                taken = reach[state] * policy.matrix[state, action]
                gradient[state, action] += taken * (q[depth, state, action] - v[depth, state])
                for turn in turns:
                    following[turn.state] += taken * turn.probability
        reach = following
    return gradient


def estimated_gradient(tree: Group, policy: TabularPolicy) -> Array:
    """Σ weight · advantage · ∇ log π over a tree on which an estimator has run."""
    gradient = np.zeros_like(policy.matrix)
    for step in tree.steps():
        state = int(step.prompt)
        gradient[state] += step.weight * step.advantage * policy.score(state, step.choice)
    return gradient


@dataclass(frozen=True, slots=True)
class Sampler:
    """Draws rollout trees the way a collector does.

    Attributes:
        mdp: The process.
        policy: Who acts.
        rule: Where the rollout forks; None for no branch points at all.
        backbones: B, size of the root group.
        siblings: K, size of every other group.
        forks_branch: Whether the forks may branch again, or only the backbones.
        distinct: Make siblings start with different actions. Biased; here to show it.
    """

    mdp: EnumerableMDP
    policy: TabularPolicy
    rule: BranchRule | None = None
    backbones: int = 2
    siblings: int = 2
    forks_branch: bool = False
    distinct: bool = False

    def __call__(self, chance: Chance) -> Group:
        """Draw one tree."""
        roots = [self.roll(chance, 0, 0, self.rule) for _ in range(self.backbones)]
        return Group(roots, self.backbones)

    def roll(
        self,
        chance: Chance,
        state: int,
        depth: int,
        rule: BranchRule | None,
        branches: tuple[int, ...] = (),
        first_action: int | None = None,
    ) -> Segment:
        """Act from a state until a group opens or the episode ends."""
        segment = Segment()
        while not self.mdp.ends(state, depth):
            if rule is not None and rule.opens(
                self.policy.entropies[state], depth=depth, branches=branches
            ):
                segment.branch = self._open(chance, state, depth, rule, (*branches, depth))
                return segment
            step = self._act(chance, state, depth, first_action)
            segment.steps.append(step)
            state, depth, first_action = int(step.observation), depth + 1, None
        return segment

    def _open(
        self, chance: Chance, state: int, depth: int, rule: BranchRule, branches: tuple[int, ...]
    ) -> Group:
        first_actions = self._first_actions(chance, state)
        members = []
        for index, first_action in enumerate(first_actions):
            own_rule = rule if index == 0 or self.forks_branch else None
            members.append(self.roll(chance, state, depth, own_rule, branches, first_action))
        return Group(members, self.siblings)

    def _first_actions(self, chance: Chance, state: int) -> list[int | None]:
        """What the siblings must start with: nothing, unless they are made distinct."""
        if not self.distinct:
            return [None] * self.siblings
        left = list(self.policy.probabilities[state])
        drawn: list[int | None] = []
        for _ in range(self.siblings):
            action = chance.draw([p / sum(left) for p in left])
            drawn.append(action)
            left[action] = 0.0
        return drawn

    def _act(self, chance: Chance, state: int, depth: int, action: int | None) -> Step:
        probabilities = self.policy.probabilities[state]
        if action is None:
            action = chance.draw(probabilities)
        turns = self.mdp.table[state][action]
        turn = turns[chance.draw([turn.probability for turn in turns])]
        return Step(
            prompt=str(state),
            candidates=tuple(str(index) for index in range(len(probabilities))),
            choice=action,
            action=str(action),
            logprob=math.log(probabilities[action]),
            entropy=self.policy.entropies[state],
            reward=turn.reward,
            observation=str(turn.state),
            depth=depth,
        )


def expected_gradient(
    sample: Callable[[Chance], Group], estimator: Callable[[Group], None], policy: TabularPolicy
) -> Array:
    """The exact expectation of a gradient estimate: a sum over every tree there is."""
    expectation = np.zeros_like(policy.matrix)
    for probability, tree in outcomes(sample):
        estimator(tree)
        expectation += probability * estimated_gradient(tree, policy)
    return expectation


@dataclass(frozen=True, slots=True)
class Case:
    """A sampler whose trees can all be listed, and the gradient it should estimate."""

    seed: int
    sampler: Sampler
    exact: Array


def random_cases(
    number: int,
    *,
    siblings: int = 2,
    max_branches: int = 1,
    forks_branch: bool = False,
    limit: int = 10_000,
) -> list[Case]:
    """The first random processes on which a tree with two backbones is worth enumerating.

    That is: up to `max_branches` branch points occur below one another, how many do depends on
    chance, decisions come before the first where the horizon has room for any, and there are at
    most `limit` different trees.
    """
    cases: list[Case] = []
    seed = 0
    while len(cases) < number:
        rng = np.random.default_rng(seed)
        mdp = random_mdp(rng)
        policy = TabularPolicy(rng.normal(size=(len(mdp.table), len(mdp.table[0]))))
        threshold = float(np.median(policy.entropies))
        rule = EntropyTrigger(max_branches=max_branches, threshold=threshold)
        sampler = Sampler(mdp, policy, rule, siblings=siblings, forks_branch=forks_branch)
        if _is_interesting(sampler, max_branches, limit):
            cases.append(Case(seed, sampler, exact_gradient(mdp, policy)))
        seed += 1
    return cases


def _is_interesting(sampler: Sampler, max_branches: int, limit: int) -> bool:
    """Look at single roots; a tree of two has the square of their number of outcomes."""
    roots: list[Segment] = []
    for _, tree in outcomes(replace(sampler, backbones=1)):
        roots += tree.members
        if len(roots) ** 2 > limit:
            return False
    shapes = {tuple(visit.level for visit in Group([root], 1).visits()) for root in roots}
    deepest = max(max(shape) for shape in shapes)
    has_prefix = any(root.steps and root.branch for root in roots)
    has_room = max_branches < sampler.mdp.horizon
    return len(shapes) > 1 and deepest == max_branches and (has_prefix or not has_room)
