"""The bench of the checks: recorded episodes, environments to try things on, exact comparison."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import TimeLimit

from sandboxgym.conformance.journal import Journal
from sandboxgym.conformance.outcome import CheckFailedError
from sandboxgym.conformance.policies import Policy
from sandboxgym.conformance.report import Facts
from sandboxgym.conformance.source import AnyEnv, Source
from sandboxgym.conformance.subject import Seen, Subject, ended
from sandboxgym.core.digest import first_difference
from sandboxgym.core.plain import owned
from sandboxgym.core.snapshot import Fidelity, Snapshot
from sandboxgym.core.stack import Stack

Around: TypeAlias = Callable[[AnyEnv], AnyEnv]
"""Puts a further wrapper around an environment."""

MOMENTS_PER_EPISODE = 4
LONGEST_EPISODE = 5  # times the depth
MAKING = "making the environment"


@dataclass
class Script:
    """An episode as it was recorded: `trace[0]` is the reset, `trace[i]` follows `actions[i-1]`."""

    seed: int
    actions: list[Any]
    trace: list[Seen]

    @property
    def moments(self) -> list[int]:
        """A few step numbers, spread over the inside of the episode, to take snapshots at."""
        inside = range(1, len(self.actions))
        if len(inside) <= MOMENTS_PER_EPISODE:
            return list(inside) or [0]
        return [int(at) for at in np.linspace(1, inside[-1], MOMENTS_PER_EPISODE)]


@dataclass
class Case:
    """One moment of an episode: its snapshot, and what came before and after it in the original."""

    script: Script
    at: int
    maker: Subject
    snapshot: Snapshot
    past: list[Seen]
    rest: list[Any]
    future: list[Seen]

    @property
    def past_actions(self) -> list[Any]:
        """The actions that led to the moment."""
        return self.script.actions[: self.at]

    @property
    def moment(self) -> Seen:
        """The observation and info that a restore has to return."""
        return {"obs": self.past[-1]["obs"], "info": self.past[-1]["info"]}


@dataclass
class Lab:
    """The bench on which one environment is checked.

    Attributes:
        source: Makes the environment.
        policy: Plays the episodes that are recorded.
        depth: Length of the recorded episodes.
        seeds: Their seeds.
        journal: Where calls are written down.
        scripts: The recorded episodes; `record` fills it.
        doing: The episode that the check at work is about, for reports.
        facts: What is known of the environment; `record` fills it.
        observer: The process whose descendants are what the environment started.
        import_path: Where this process found modules before any environment was made, which may go
            to another folder.
    """

    source: Source
    policy: Policy
    depth: int
    seeds: Sequence[int]
    journal: Journal = field(default_factory=Journal)
    scripts: list[Script] = field(default_factory=list)
    doing: Script | None = None
    facts: Facts = field(default_factory=Facts)
    observer: int = field(default_factory=os.getpid)
    import_path: list[str] = field(
        default_factory=lambda: [str(Path(entry).absolute()) for entry in sys.path]
    )
    _subjects: list[Subject] = field(default_factory=list)
    _made: int = 0

    def record(self) -> None:
        """Play the episodes that all checks compare with."""
        subject = self.make()
        base = Stack.of(subject.env).base
        choice = str(getattr(base, "choice", None) or "")
        self.facts = Facts(_in_words(base.fidelity), base.sandbox_versions, choice, made=True)
        self.scripts = [self.play_episode(subject, seed, self.depth) for seed in self.seeds]

    def play_episode(self, subject: Subject, seed: int, steps: int) -> Script:
        """Record an episode of at most so many steps."""
        self.doing = script = Script(seed, [], [subject.reset(seed)])
        self._explore(subject, script, steps, salt=0)
        return script

    def detour(self, subject: Subject, seen: Seen, steps: int, salt: int) -> Script:
        """Let the policy go on from where `subject` is, on a way of its own for each salt."""
        seed = self.seeds[0] if self.doing is None else self.doing.seed
        script = Script(seed, [], [seen])
        self._explore(subject, script, steps, salt)
        return script

    def _explore(self, subject: Subject, script: Script, steps: int, salt: int) -> None:
        rng = np.random.default_rng([script.seed, salt])
        space = copy.deepcopy(subject.env.action_space)
        space.seed(int(rng.integers(2**31)))
        while len(script.actions) < steps and not ended(script.trace[-1]):
            seen = owned(script.trace[-1])
            with self.journal.call(subject.name, "the policy"):
                action = owned(self.policy(seen["obs"], seen["info"], space, rng), "action")
            script.actions.append(action)
            script.trace.append(subject.step(action))

    def in_turn(self) -> Iterator[Script]:
        """The recorded episodes; the one handed out is what a failure is reported for."""
        for script in self.scripts:
            self.doing = script
            yield script

    def cases(self, *, maker: Subject | None = None) -> Iterator[Case]:
        """Moments of all episodes, captured by one environment that then plays on to the end."""
        maker = maker or self.make()
        for script in self.in_turn():
            for at in script.moments:
                yield self.case(maker, script, at)

    def case(self, maker: Subject, script: Script, at: int) -> Case:
        """One moment of an episode, captured."""
        past = [maker.reset(script.seed), *maker.play(script.actions[:at])]
        snapshot = maker.snapshot()
        rest = script.actions[at:]
        return Case(script, at, maker, snapshot, past, rest, maker.play(rest))

    def long_episode(self, around: Around | None = None) -> Script:
        """An episode to its end, if it ends within reason."""
        return self.play_episode(self.make(around), self.seeds[0], LONGEST_EPISODE * self.depth)

    def make(self, around: Around | None = None) -> Subject:
        """A new environment, inside of a further wrapper where one is given."""
        with self.journal.call("", MAKING):
            env = self.source.make()
        if not isinstance(env, gym.Env):
            raise TypeError(
                f"{self.source.name} returned a {type(env).__name__}, which is no gymnasium.Env"
            )
        self.facts = replace(self.facts, made=True)
        return self.adopt(env if around is None else around(env))

    def use(self, subject: Subject, case: Case) -> None:
        """Play another episode, of another length, than the case's."""
        seen = subject.reset(case.script.seed + 1)
        self.detour(subject, seen, case.at + 2, salt=1)

    def fork(self, subject: Subject, n: int) -> list[Subject]:
        """Fork the environment of a subject."""
        return [self.adopt(env) for env in subject.fork(n)]

    def adopt(self, env: AnyEnv) -> Subject:
        """See to it that an environment is closed when the check is over."""
        self._made += 1
        subject = Subject(env, self.journal, str(self._made))
        self._subjects.append(subject)
        return subject

    def let_go(self, subject: Subject) -> None:
        """Close an environment before the check is over."""
        self._subjects.remove(subject)
        subject.close()

    def tidy(self) -> None:
        """Close all environments that the check made, all even where one cannot be closed."""
        subjects, self._subjects = self._subjects, []
        with ExitStack() as closing:
            for subject in subjects:
                closing.callback(subject.close)

    def same(self, expected: Any, found: Any, where: str, step: int | None = None) -> None:
        """Fail the check unless two things are exactly equal."""
        difference = first_difference(expected, found)
        if difference is not None:
            raise CheckFailedError(where, difference, step)

    def same_moment(self, expected: Snapshot, found: Snapshot, where: str) -> None:
        """Fail the check unless two snapshots hold the same."""
        for difference in expected.diff(found, limit=1):
            raise CheckFailedError(where, difference, expected.step)

    def repeats(
        self,
        subject: Subject,
        actions: Sequence[Any],
        expected: Sequence[Seen],
        how: str,
        *,
        after: int = 0,
    ) -> None:
        """Fail the check unless actions, taken after so many others, give what is expected."""
        for step, (action, seen) in enumerate(zip(actions, expected, strict=True), start=after + 1):
            self.same(seen, subject.step(action), f"{how}, step {step}", step)

    def repeats_episode(self, subject: Subject, script: Script, how: str) -> None:
        """Fail the check unless an environment plays an episode as it was recorded."""
        self.same(script.trace[0], subject.reset(script.seed), f"{how}, reset", 0)
        self.repeats(subject, script.actions, script.trace[1:], how)

    def continues(self, subject: Subject, case: Case, how: str) -> None:
        """Fail the check unless a subject goes on from the case's moment as the original did."""
        self.repeats(subject, case.rest, case.future, f"{how} {case.at}", after=case.at)


def limited_to(steps: int) -> Around:
    """Put a `TimeLimit` around an environment."""
    return lambda env: TimeLimit(env, steps)


def _in_words(fidelity: Fidelity) -> str:
    return ", ".join(
        (
            f"mechanism {fidelity.mechanism}",
            f"captures {' '.join(sorted(fidelity.scope))}",
            "portable" if fidelity.portable else "not portable",
            "exact" if fidelity.exact else "best effort",
            f"restores at a cost {fidelity.cost}",
            *(["forks run in threads"] if fidelity.threads else []),
        )
    )
