"""Measuring what snapshot, restore and fork of an environment cost, at several depths."""

from __future__ import annotations

import copy
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sandboxgym.conformance import processes
from sandboxgym.conformance.policies import random_policy
from sandboxgym.conformance.source import AnyEnv
from sandboxgym.core import forking
from sandboxgym.core.errors import SandboxGymError
from sandboxgym.core.snapshot import Snapshot

FORKS = 8
OPERATIONS = ("step", "snapshot", "restore", f"fork({FORKS})", "replay")
LEAST_ROUNDS, MOST_ROUNDS, LEAST_OF_SLOW = 3, 200, 2
HELD_BY_PROCESSES, MOST_HELD = 24, 2000
SECONDS_OF_HOLDING = 0.5
EPISODES = 5


class TooShortError(SandboxGymError):
    """No episode lasts long enough to be measured."""


@dataclass(frozen=True)
class Spread:
    """The median of several times in seconds, and the quartiles around it."""

    low: float
    median: float
    high: float
    rounds: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        """Sum up."""
        low, median, high = np.percentile(seconds, [25, 50, 75])
        return cls(float(low), float(median), float(high), len(seconds))


@dataclass(frozen=True)
class Costs:
    """What was measured at one depth.

    Attributes:
        depth: Number of actions since the reset.
        times: The time of each operation that worked.
        failures: Why each other operation did not work.
        file_bytes: Size of the snapshot as a file, or None where it cannot be written.
        held_bytes: Memory that one more snapshot takes while it is held, in this process and in
            those that it started; None where the system does not tell.
    """

    depth: int
    times: dict[str, Spread]
    failures: dict[str, str]
    file_bytes: int | None
    held_bytes: float | None


@dataclass
class Stopwatch:
    """Times of operations, alternating, so that what disturbs one disturbs all.

    Attributes:
        enough: Seconds after which a slow operation is attempted no more.
        times: The times of each operation, in seconds.
        failures: Why each operation that does not work does not.
    """

    enough: float
    times: dict[str, list[float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def timing(self, operation: str) -> Iterator[None]:
        """Time what is done inside."""
        began = time.perf_counter()
        yield
        self.times.setdefault(operation, []).append(time.perf_counter() - began)

    def attempt(self, operation: str, do: Callable[[], Any]) -> Any:
        """Time an operation, unless it has failed or took long enough before."""
        times = self.times.get(operation, [])
        if operation in self.failures or (len(times) >= LEAST_OF_SLOW and sum(times) > self.enough):
            return None
        try:
            with self.timing(operation):
                return do()
        except SandboxGymError as error:
            self.failures[operation] = f"{type(error).__name__}: {error}"
            return None


def longest_walk(env: AnyEnv, seed: int, depth: int) -> tuple[int, list[Any]]:
    """Random actions of an episode that reaches a depth, or of the longest of a few.

    Returns:
        The seed of its reset, and its actions; there is one more than the depths that can be
        measured, to have a step to take at the last.

    Raises:
        TooShortError: Every episode ends at its first step.
    """
    best: tuple[int, list[Any]] = (seed, [])
    for tried in range(seed, seed + EPISODES):
        actions = _walk(env, tried, depth + 1)
        if len(actions) > len(best[1]):
            best = tried, actions
        if len(actions) > depth:
            break
    if not best[1]:
        raise TooShortError("no episode lasts one step")
    return best


def measure(env: AnyEnv, seed: int, actions: Sequence[Any], depth: int, seconds: float) -> Costs:
    """Measure at one depth of a walk.

    Args:
        env: The environment.
        seed: The seed of the walk.
        actions: The walk's actions, at least `depth + 1`.
        depth: Where to measure.
        seconds: How long to measure, about; at least a few rounds are made.
    """
    env.reset(seed=seed)
    for action in actions[:depth]:
        env.step(action)
    moment = forking.snapshot(env)
    following = actions[depth]
    _round(env, moment, following, Stopwatch(enough=seconds))  # warms up
    watch = Stopwatch(enough=seconds)
    until = time.perf_counter() + seconds
    for number in range(MOST_ROUNDS):
        if number >= LEAST_ROUNDS and time.perf_counter() > until:
            break
        _round(env, moment, following, watch)
    forking.restore(env, moment)
    return Costs(
        depth=depth,
        times={name: Spread.of(times) for name, times in watch.times.items()},
        failures=watch.failures,
        file_bytes=_file_bytes(moment),
        held_bytes=_held_bytes(env, watch.times["snapshot"]),
    )


def _walk(env: AnyEnv, seed: int, length: int) -> list[Any]:
    space = copy.deepcopy(env.action_space)
    space.seed(seed)
    rng = np.random.default_rng(seed)
    obs, info = env.reset(seed=seed)
    actions: list[Any] = []
    ended = False
    while len(actions) < length and not ended:
        action = random_policy(obs, info, space, rng)
        obs, _, terminated, truncated, info = env.step(action)
        actions.append(action)
        ended = bool(terminated or truncated)
    return actions


def _round(env: AnyEnv, moment: Snapshot, following: Any, watch: Stopwatch) -> None:
    """Every operation once, each from the state that the one before left it in."""
    with watch.timing("restore"):
        forking.restore(env, moment)
    with watch.timing("snapshot"):
        forking.snapshot(env)
    for twin in watch.attempt(f"fork({FORKS})", lambda: forking.fork(env, FORKS)) or ():
        twin.close()
    with watch.timing("step"):
        env.step(following)
    recipe = moment.drop_state()
    watch.attempt("replay", lambda: forking.restore(env, recipe))
    forking.restore(env, moment)
    env.step(following)


def _file_bytes(moment: Snapshot) -> int | None:
    try:
        return len(moment.to_bytes())
    except SandboxGymError:
        return None


def _held_bytes(env: AnyEnv, times: Sequence[float]) -> float | None:
    """Hold many snapshots of this moment, and see how much memory that takes.

    What Python allocates is counted exactly. What C libraries allocate shows in the memory of the
    process, as far as it does not find room where something was freed.
    """
    if not processes.can_be_seen():
        return None
    number = int(min(MOST_HELD, max(HELD_BY_PROCESSES, SECONDS_OF_HOLDING / np.median(times))))
    if forking.Stack.of(env).base.fidelity.mechanism == "process":
        number = HELD_BY_PROCESSES  # more could be over the budget of templates
    own, others = _growth(env, number, _memory)
    tracemalloc.start()
    (python,) = _growth(env, number, lambda: tracemalloc.get_traced_memory()[:1])
    tracemalloc.stop()
    return max(0, max(python, own) + others) / number


def _growth(env: AnyEnv, number: int, measured: Callable[[], Sequence[int]]) -> Sequence[int]:
    """By how much something grows while a number of snapshots is held."""
    held = [forking.snapshot(env) for _ in range(2)]  # the first may fill caches
    before = measured()
    held += [forking.snapshot(env) for _ in range(number)]
    return [late - early for early, late in zip(before, measured(), strict=True)]


def _memory() -> tuple[int, int]:
    """Bytes that this process takes, and that those that it started take."""
    pid = os.getpid()
    others = [child.pid for child in processes.descendants(pid)]
    return processes.own_memory([pid]), processes.own_memory(others)
