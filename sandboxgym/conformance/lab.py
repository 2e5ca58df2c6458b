"""The bench of the checks: recorded episodes, environments to try things on, exact comparison."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from sandboxgym.conformance.outcome import CheckFailedError
from sandboxgym.conformance.source import Source
from sandboxgym.conformance.subject import Seen, Subject, ended
from sandboxgym.core import forking
from sandboxgym.core.digest import first_difference
from sandboxgym.core.plain import owned
from sandboxgym.core.snapshot import Fidelity, Snapshot

Policy: TypeAlias = Callable[[Any, dict[str, Any], spaces.Space[Any], np.random.Generator], Any]
"""Chooses an action from observation, info, a private copy of the action space, and a generator."""

MOMENTS_PER_EPISODE = 4
LONGEST_EPISODE = 5  # times the depth


def random_policy(
    obs: Any, info: dict[str, Any], space: spaces.Space[Any], rng: np.random.Generator
) -> Any:
    """One of the admissible commands where the info lists them, else any action of the space."""
    commands = info.get("admissible_commands")
    if commands:
        return commands[int(rng.integers(len(commands)))]
    return space.sample()


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
        scripts: The recorded episodes; `record` fills it.
        doing: The episode that the check at work is about, for reports.
        mechanism: How the environment forks, in words; `record` fills it.
        versions: What the environment says about its versions; `record` fills it.
    """

    source: Source
    policy: Policy
    depth: int
    seeds: Sequence[int]
    scripts: list[Script] = field(default_factory=list)
    doing: Script | None = None
    mechanism: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    _subjects: list[Subject] = field(default_factory=list)

    def record(self) -> None:
        """Play the episodes that all checks compare with."""
        subject = self.make()
        base = forking.Stack.of(subject.env).base
        self.mechanism = _in_words(base.fidelity)
        self.versions = base.sandbox_versions
        for seed in self.seeds:
            self.scripts.append(self.play_episode(subject, seed, self.depth))

    def play_episode(self, subject: Subject, seed: int, steps: int) -> Script:
        """Record an episode of at most so many steps."""
        self.doing = script = Script(seed, [], [subject.reset(seed)])
        self._explore(subject, script, steps, salt=0)
        return script

    def detour(self, subject: Subject, seen: Seen, steps: int, salt: int) -> Script:
        """Let the policy go on from where `subject` is, on a way of its own for each salt."""
        script = Script(self.seeds[0], [], [seen])
        self._explore(subject, script, steps, salt)
        return script

    def _explore(self, subject: Subject, script: Script, steps: int, salt: int) -> None:
        rng = np.random.default_rng([script.seed, salt])
        space = copy.deepcopy(subject.env.action_space)
        space.seed(int(rng.integers(2**31)))
        while len(script.actions) < steps and not ended(script.trace[-1]):
            seen = owned(script.trace[-1])
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

    def long_episode(self, limit: int | None = None) -> Script:
        """An episode to its end, if it ends within reason."""
        return self.play_episode(self.make(limit), self.seeds[0], LONGEST_EPISODE * self.depth)

    def make(self, limit: int | None = None) -> Subject:
        """A new environment, under a further `TimeLimit` where a limit is given."""
        env = self.source.make()
        return self.adopt(env if limit is None else TimeLimit(env, limit))

    def use(self, subject: Subject, case: Case) -> None:
        """Play another episode, of another length, than the case's."""
        seen = subject.reset(case.script.seed + 1)
        self.detour(subject, seen, case.at + 2, salt=1)

    def fork(self, subject: Subject, n: int) -> list[Subject]:
        """Fork the environment of a subject."""
        return [self.adopt(env) for env in forking.fork(subject.env, n)]

    def adopt(self, env: gym.Env[Any, Any]) -> Subject:
        """See to it that an environment is closed when the check is over."""
        subject = Subject(env)
        self._subjects.append(subject)
        return subject

    def tidy(self) -> None:
        """Close all environments that the check made."""
        subjects, self._subjects = self._subjects, []
        for subject in subjects:
            subject.close()

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


def _in_words(fidelity: Fidelity) -> str:
    return ", ".join(
        (
            f"mechanism {fidelity.mechanism}",
            f"captures {' '.join(sorted(fidelity.scope))}",
            "portable" if fidelity.portable else "not portable",
            "exact" if fidelity.exact else "best effort",
            f"restores at a cost {fidelity.cost}",
        )
    )
