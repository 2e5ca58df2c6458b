"""A rollout tree that grows in tokens: several episodes in lock step, forked where planned.

Who generates is left to the caller, who asks which prompts wait and hands in what the model said:

```
env.reset(seed=7)
with TokenTree(env, dialogue, plan) as tree:
    while prompts := tree.waiting():
        tree.advance(generate(prompts))
    rows = tree.rows()
```

Whether to branch is decided by the plan, before an action is drawn; that keeps estimates unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from typing_extensions import Self

from sandboxgym.core.errors import InvalidActionError
from sandboxgym.core.forking import AnyEnv, fork, snapshot
from sandboxgym.integrations.credit import (
    RolloutTreeError,
    Segment,
    nested_leave_one_out,
    per_token,
)


@dataclass(frozen=True)
class Dialogue:
    """How an episode becomes tokens, and tokens an action.

    Attributes:
        opening: The prompt, from the first observation and info.
        answer: What follows an action, from the observation and info that it led to.
        action: The action, from the tokens that the model said.
    """

    opening: Callable[[Any, dict[str, Any]], list[int]]
    answer: Callable[[Any, dict[str, Any]], list[int]]
    action: Callable[[list[int]], Any]


@dataclass(frozen=True)
class Plan:
    """Where a tree branches.

    Attributes:
        roots: How many independent episodes there are.
        branch_at: Numbers of decisions after which every living episode becomes `members` many.
        members: The size of the groups at branch points.
        max_decisions: Episodes that last longer are cut off.
        max_tokens: Episodes are cut off where the environment's answer would go beyond these.
    """

    roots: int
    branch_at: tuple[int, ...] = ()
    members: int = 2
    max_decisions: int = 50
    max_tokens: int = 4096

    def __post_init__(self) -> None:
        if self.roots < 1 or self.members < 2 or self.max_decisions < 1:
            raise ValueError(f"{self}: a tree needs a root, groups of two, and a decision")
        if len(set(self.branch_at)) < len(self.branch_at) or any(d < 1 for d in self.branch_at):
            raise ValueError(f"{self}: branch_at takes different numbers of decisions, from 1")

    @property
    def most_leaves(self) -> int:
        """How many leaves the tree has where no episode ends before its last branch point."""
        return self.roots * int(self.members ** len(self.branch_at))


class Said(NamedTuple):
    """What the model said: its tokens, and their log-probabilities."""

    tokens: list[int]
    logprobs: list[float]


class Row(NamedTuple):
    """A leaf as libraries train on it.

    Attributes:
        prompt: Tokens before the first decision.
        tokens: All tokens after it, the model's and the environment's.
        mask: 1 for the model's tokens.
        logprobs: Of the model's tokens, 0 for the environment's.
        path: The segments of the row.
        credits: For every token, the weight times the advantage of its segment.
        total: The return of the episode.
    """

    prompt: list[int]
    tokens: list[int]
    mask: list[int]
    logprobs: list[float]
    path: tuple[Segment, ...]
    credits: list[float]
    total: float


@dataclass
class _Lane:
    """An episode of the tree.

    Attributes:
        env: Where it goes on; None once it ended.
        prompt: As in `Row`; so are `tokens`, `mask`, `logprobs`, and `path`.
        member: Which one of its group it is, since its last branch point.
        started: Where in `tokens` the present segment starts.
        reward: What was paid on that so far.
    """

    env: AnyEnv | None
    prompt: list[int]
    member: int
    tokens: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    path: tuple[Segment, ...] = ()
    started: int = 0
    reward: float = 0.0

    def says(self, said: Said) -> None:
        self.tokens += said.tokens
        self.logprobs += said.logprobs
        self.mask += [1] * len(said.tokens)

    def hears(self, tokens: list[int]) -> None:
        self.tokens += tokens
        self.logprobs += [0.0] * len(tokens)
        self.mask += [0] * len(tokens)

    def end_segment(self) -> None:
        segment = Segment(self.member, len(self.tokens) - self.started, self.reward)
        self.path = (*self.path, segment)
        self.started, self.reward = len(self.tokens), 0.0

    def end(self) -> None:
        self.end_segment()
        self.close()

    def close(self) -> None:
        env, self.env = self.env, None
        if env is not None:
            env.close()

    def twin(self, env: AnyEnv, member: int) -> _Lane:
        """The same history, to be continued by another member of the group that opens here."""
        return replace(
            self,
            env=env,
            member=member,
            tokens=list(self.tokens),
            mask=list(self.mask),
            logprobs=list(self.logprobs),
        )


class TokenTree:
    """Grows a tree from the moment in which an environment is; the environment is left as it is."""

    def __init__(self, env: AnyEnv, dialogue: Dialogue, plan: Plan) -> None:
        self._dialogue = dialogue
        self._plan = plan
        self._decisions = 0
        now = snapshot(env).last
        prompt = dialogue.opening(now.obs, now.info)
        self._lanes = [_Lane(twin, prompt, i) for i, twin in enumerate(fork(env, plan.roots))]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what still lives."""
        for lane in self._lanes:
            lane.close()

    def waiting(self) -> list[list[int]]:
        """All tokens before the next decision of each living episode; empty when all have ended."""
        return [lane.prompt + lane.tokens for lane in self._living()]

    def advance(self, answers: Sequence[Said]) -> None:
        """Let every waiting episode do what the model said, and branch where the plan says so."""
        self._decisions += 1
        for lane, said in zip(self._living(), answers, strict=True):
            self._decide(lane, said)
        if self._decisions in self._plan.branch_at:
            self._branch()

    def rows(self) -> list[Row]:
        """The leaves, with their credits."""
        if self._living():
            raise RolloutTreeError("episodes of the tree still live: call advance until none waits")
        paths = [lane.path for lane in self._lanes]
        return [
            Row(
                prompt=lane.prompt,
                tokens=lane.tokens,
                mask=lane.mask,
                logprobs=lane.logprobs,
                path=lane.path,
                credits=per_token(lane.path, credit),
                total=sum(segment.reward for segment in lane.path),
            )
            for lane, credit in zip(self._lanes, nested_leave_one_out(paths), strict=True)
        ]

    def _living(self) -> list[_Lane]:
        return [lane for lane in self._lanes if lane.env is not None]

    def _decide(self, lane: _Lane, said: Said) -> None:
        assert lane.env is not None
        lane.says(said)
        try:
            obs, reward, terminated, truncated, info = lane.env.step(
                self._dialogue.action(said.tokens)
            )
        except InvalidActionError as error:  # the episode is as it was, and the model may read why
            obs, reward, terminated, truncated, info = str(error), 0.0, False, False, {}
        lane.reward += float(reward)
        answer = self._dialogue.answer(obs, info)
        too_long = len(lane.tokens) + len(answer) > self._plan.max_tokens
        last = self._decisions >= self._plan.max_decisions
        if terminated or truncated or last or too_long:
            lane.end()
        else:
            lane.hears(answer)

    def _branch(self) -> None:
        """Make of every living episode a group; the siblings stand behind it."""
        grown: list[_Lane] = []
        for lane in self._lanes:
            grown.append(lane)
            if lane.env is None:
                continue
            lane.end_segment()
            lane.member = 0
            forks = fork(lane.env, self._plan.members - 1)
            grown += [lane.twin(env, 1 + i) for i, env in enumerate(forks)]
        self._lanes = grown
