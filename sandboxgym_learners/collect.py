"""Collecting rollout trees: all live episodes of all trees advance together, one batch a step.

A tree begins with a group of roots, forks of one reset. In front of every action a rule may open
a further group on a backbone: the moment is captured, restored into environments of a pool, and
all members draw from the distribution that was just computed. Forks do not branch again, so that a
backbone with M branch points brings 1 + M(K - 1) returns.

Every member of every group draws from a generator of its own, seeded by its place in the tree. What
is collected therefore does not depend on which episodes happen to share a batch, up to the rounding
of the model's arithmetic. Restored members also get new environment randomness: they are
independent draws even where the environment is stochastic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sandboxgym_learners.branching import BranchRule
from sandboxgym_learners.faces import TEXT, Face, WorldError
from sandboxgym_learners.policy import Act, Outlook, Policy, Query
from sandboxgym_learners.prompts import Episode, PromptFormat
from sandboxgym_learners.stages import HereStage, PoolStage, Stage, Stepped
from sandboxgym_learners.tree import Group, Segment, Step
from sandboxgym_learners.worlds import TextEnv, WorldConfig, commands


@dataclass(slots=True)
class Costs:
    """What collecting has cost so far. The counts are reproducible, the seconds are not."""

    returns: int = 0
    env_steps: int = 0
    generated_tokens: int = 0
    forward_tokens: int = 0
    restores: int = 0
    policy_s: float = field(default=0.0, compare=False)
    env_s: float = field(default=0.0, compare=False)
    restore_s: float = field(default=0.0, compare=False)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of a block to one of the seconds."""
        begin = time.perf_counter()
        yield
        setattr(self, name, getattr(self, name) + time.perf_counter() - begin)


@dataclass(slots=True)
class Lane:
    """A live episode: one member of a group, on its way to the next branch point or the end.

    Attributes:
        key: Its place: tree, root, and for a fork the depth and its number among the siblings.
        env: The number of its environment on the stage.
        rng: Where its actions come from.
        episode: What it has seen and done.
        commands: What it can do now, where the environment says so.
        segment: Where its decisions are written.
        backbone: Whether it may branch.
        branches: The depths at which it has branched.
    """

    key: tuple[int, ...]
    env: int
    rng: np.random.Generator
    episode: Episode
    commands: tuple[str, ...]
    segment: Segment
    backbone: bool = True
    branches: list[int] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """How many decisions it has taken."""
        return len(self.episode.actions)


class Collector:
    """Collects trees with a policy in one kind of environment.

    Attributes:
        costs: What it has cost since the collector was made.
    """

    def __init__(
        self,
        policy: Policy,
        make_env: Callable[[], TextEnv],
        form: PromptFormat,
        face: Face = TEXT,
        *,
        workers: int = 0,
        lanes: int = 64,
    ) -> None:
        """Collect with `policy`.

        Args:
            policy: Who acts.
            make_env: Makes an environment.
            form: What a prompt has in it.
            face: How to talk to the environment.
            workers: Processes that step environments at once; 0 to step them here.
            lanes: Environments in these processes: the most episodes that go on at once.
        """
        self.policy = policy
        self.form = form
        self.face = face
        self.lanes = lanes if workers else None
        self.stage: Stage = (
            PoolStage(make_env, lanes=lanes, workers=workers) if workers else HereStage(make_env)
        )
        self.costs = Costs()

    @classmethod
    def in_world(
        cls,
        policy: Policy,
        world: WorldConfig,
        make_env: Callable[[], TextEnv],
        form: PromptFormat,
    ) -> Collector:
        """Collect with `policy` as a world says; `make_env` makes its environments."""
        workers, lanes = world.workers, world.lanes
        return cls(policy, make_env, form, world.face, workers=workers, lanes=lanes)

    def close(self) -> None:
        """Close the environments."""
        self.stage.close()

    def collect(
        self,
        tasks: Sequence[int],
        *,
        roots: int,
        siblings: int = 1,
        rule: BranchRule | None = None,
        seed: Sequence[int],
    ) -> list[Group]:
        """Collect a tree for each task.

        Args:
            tasks: Numbers of tasks; one may occur several times.
            roots: B, independent episodes of the root group.
            siblings: K, members of every group that the rule opens.
            rule: Where backbones branch; None for nowhere.
            seed: What decides all draws, such as the seed of a run and the number of an update.
        """
        branches = 0 if rule is None else getattr(rule, "max_branches", 1)
        at_once = _fitting(self.lanes, roots * (1 + branches * (siblings - 1)), len(tasks))
        numbered = list(enumerate(tasks))
        trees: list[Group] = []
        for start in range(0, len(numbered), at_once):
            some = numbered[start : start + at_once]
            trees += self._collect(some, roots, siblings, rule, seed)
        return trees

    def _collect(
        self,
        tasks: Sequence[tuple[int, int]],
        roots: int,
        siblings: int,
        rule: BranchRule | None,
        seed: Sequence[int],
    ) -> list[Group]:
        """Collect the trees of some numbered tasks together."""
        trees: list[Group] = []
        lanes: list[Lane] = []
        for number, task in tasks:
            first = self._reset(task, (number, 0), seed)
            keys = [(number, root) for root in range(1, roots)]
            group, members = self._open_group(first, keys, seed, backbones=True)
            trees.append(group)
            lanes += members
        while lanes:
            lanes = self._advance(lanes, siblings, rule, seed)
        return trees

    def _advance(
        self, lanes: Sequence[Lane], siblings: int, rule: BranchRule | None, seed: Sequence[int]
    ) -> list[Lane]:
        """Take one decision in every lane; those that go on, forks included."""
        before = self.policy.forward_tokens
        queries = [self._query(lane) for lane in lanes]
        drawing: list[tuple[Lane, Outlook]] = []
        for lane, outlook in zip(lanes, self._consider(queries), strict=True):
            members = [lane]
            if (
                rule is not None
                and lane.backbone
                and rule.opens(outlook.entropy, depth=lane.depth, branches=lane.branches)
            ):
                lane.branches.append(lane.depth)
                keys = [(*lane.key, lane.depth, sibling) for sibling in range(1, siblings)]
                above = lane.segment
                above.branch, members = self._open_group(lane, keys, seed, backbones=False)
            drawing += [(member, outlook) for member in members]
        with self.costs.timed("policy_s"):
            acts = self.policy.draw(
                [outlook for _, outlook in drawing], [lane.rng for lane, _ in drawing]
            )
        self.costs.forward_tokens += self.policy.forward_tokens - before
        with self.costs.timed("env_s"):
            results = self.stage.step(
                {
                    lane.env: self.face.act(act.action)
                    for (lane, _), act in zip(drawing, acts, strict=True)
                }
            )
        return [
            lane
            for (lane, outlook), act in zip(drawing, acts, strict=True)
            if self._note(lane, outlook, act, results[lane.env])
        ]

    def _query(self, lane: Lane) -> Query:
        if self.policy.chooses:
            return Query(lane.episode.prompt(self.form), lane.commands)
        return Query(lane.episode.prompt(self.form, lane.commands))

    def _consider(self, queries: Sequence[Query]) -> list[Outlook]:
        """An outlook for every query; equal queries share one."""
        unique = list(dict.fromkeys(queries))
        with self.costs.timed("policy_s"):
            outlooks = dict(zip(unique, self.policy.consider(unique), strict=True))
        return [outlooks[query] for query in queries]

    def _note(self, lane: Lane, outlook: Outlook, act: Act, result: Stepped) -> bool:
        """Write down what an action led to; whether the episode goes on."""
        observation, reward, terminated, truncated, info = result
        seen = self.face.see(observation)
        self.costs.env_steps += 1
        self.costs.generated_tokens += act.tokens
        lane.segment.steps.append(
            Step(
                prompt=outlook.query.prompt,
                candidates=outlook.query.candidates,
                choice=act.choice,
                action=act.action,
                logprob=act.logprob,
                entropy=outlook.entropy,
                reward=float(reward),
                observation=seen,
                depth=lane.depth,
                entropy_of=outlook.entropy_of,
                text=act.text,
                written=act.written,
                written_logprobs=act.written_logprobs,
            )
        )
        if terminated or truncated:
            lane.segment.success = self.face.won(float(reward), info)
            self.costs.returns += 1
            self.stage.release(lane.env)
            return False
        lane.episode = lane.episode.after(act.action, seen)
        lane.commands = self._commands(info)
        return True

    def _commands(self, info: dict[str, Any]) -> tuple[str, ...]:
        """What can be done now: has to be known if the policy chooses, else may be."""
        if self.policy.chooses:
            return commands(info)
        return tuple(info.get("admissible_commands", ()))

    def _reset(self, task: int, key: tuple[int, ...], seed: Sequence[int]) -> Lane:
        rng = _generator(seed, key)
        # The seed of the reset chooses the task and is the same every time. What happens in it has
        # to be drawn anew, for this episode as for its forks, or they are no equal members.
        with self.costs.timed("env_s"):
            env, observation, info = self.stage.reset(
                task, self.face.options(task), fresh=int(rng.integers(2**31))
            )
        episode = self.face.begin(observation, info)
        return Lane(key, env, rng, episode, self._commands(info), Segment())

    def _open_group(
        self, lane: Lane, keys: Sequence[tuple[int, ...]], seed: Sequence[int], *, backbones: bool
    ) -> tuple[Group, list[Lane]]:
        """Open a group in front of a lane's next action: the lane itself, and a fork for each key.

        The lane goes on in the group's first segment.
        """
        size = 1 + len(keys)
        group = Group([Segment() for _ in range(size)], planned=size)
        lane.segment = group.members[0]
        members = [lane]
        generators = [_generator(seed, key) for key in keys]
        with self.costs.timed("restore_s"):
            envs = self.stage.fork(lane.env, [int(rng.integers(2**31)) for rng in generators])
        for key, env, rng, segment in zip(keys, envs, generators, group.members[1:], strict=True):
            fork = Lane(key, env, rng, lane.episode, lane.commands, segment, backbones)
            members.append(fork)
        self.costs.restores += len(keys)
        return group, members


def _generator(seed: Sequence[int], key: Sequence[int]) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def _fitting(lanes: int | None, episodes: int, trees: int) -> int:
    """How many trees of so many episodes at most are collected at once."""
    if lanes is None:
        return max(1, trees)
    if lanes < episodes:
        raise WorldError(
            f"a tree here may have {episodes} episodes at once, and there are {lanes} lanes: set "
            f"--world.lanes {episodes} or more, or collect smaller trees"
        )
    return lanes // episodes
