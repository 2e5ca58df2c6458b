"""The rollout tree: nested groups of segments, plain data that everything else reads.

```
Group (root, B backbones of one task)
├── Segment: steps 0 … t-1 ── Group (branch point at t, K siblings)
│                             ├── Segment: the backbone's own continuation, to the end
│                             ├── Segment: a fork, to the end
│                             └── …
└── Segment: steps 0 … end
```

A segment is the run of decisions of one member, from where its group opens to where the next group
below opens, or to the end of the episode. A group of siblings shares the history above it, and only
that: its members are independent draws from the policy. The first member of every group below
the root is the backbone's own continuation; the others are forks.

The tree holds what was collected and, once an estimator of `advantages` ran over it, the
advantage and the weight of every decision. It knows nothing of environments, models or torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from sandboxgym.core.errors import SandboxGymError


class TreeFormatError(SandboxGymError, ValueError):
    """The data is not a rollout tree, or a group in it does not fit its planned size."""


@dataclass(slots=True)
class Step:
    """One decision of the policy and what came of it.

    Attributes:
        prompt: What the policy read.
        candidates: The actions it chose among; empty when it wrote free text.
        choice: Index of the action in `candidates`; -1 for free text.
        action: The action as given to the environment.
        logprob: log π(action | prompt) under the policy that acted.
        entropy: H(π(· | prompt)) in nats, known before the action was drawn.
        reward: What the environment paid for the action.
        observation: What the agent saw after the action.
        depth: Number of decisions before this one in the same episode.
        value: What a critic expected from here on, where there is one.
        advantage: Credit given by an estimator; 0 until one ran.
        weight: Share of this decision in the gradient; 0 until an estimator ran.
        entropy_of: What `entropy` is of: all "commands", exactly, or, where the policy writes, its
            "first token" or its "likely text".
        text: All that the policy wrote, its thought included; empty for a choice.
        written: The tokens of the text.
        written_logprobs: The log-probability of each; they add up to `logprob`.
    """

    prompt: str
    candidates: tuple[str, ...]
    choice: int
    action: str
    logprob: float
    entropy: float
    reward: float
    observation: str
    depth: int
    value: float = 0.0
    advantage: float = 0.0
    weight: float = 0.0
    entropy_of: str = "commands"
    text: str = ""
    written: tuple[int, ...] = ()
    written_logprobs: tuple[float, ...] = ()


@dataclass(slots=True)
class Segment:
    """The decisions of one member of a group, up to the next branch point or the end.

    Attributes:
        steps: The decisions, in order. Empty where a branch point follows at once.
        branch: The group that opens at the end; None at a leaf.
        success: At a leaf, whether the task was solved; None where that is not known.
    """

    steps: list[Step] = field(default_factory=list)
    branch: Group | None = None
    success: bool | None = None

    def own_reward(self) -> float:
        """The rewards collected on this segment alone."""
        return sum(step.reward for step in self.steps)

    def mean_return(self) -> float:
        """R(segment): its own rewards plus the mean return of the group at its end.

        Given the history where the segment starts and its actions, this is an unbiased estimate
        of what they lead to, with less noise than any single leaf below.
        """
        below = self.branch.mean_return() if self.branch is not None else 0.0
        return self.own_reward() + below


class Visit(NamedTuple):
    """A segment met on a walk through the tree, and where it hangs.

    Attributes:
        segment: The segment itself.
        level: Number of branch points above it; 0 for a root segment.
        weight: Product over the groups on its path of one over their planned size.
        reward_above: The rewards collected on the path before the segment starts.
    """

    segment: Segment
    level: int
    weight: float
    reward_above: float


@dataclass(slots=True)
class Group:
    """Independent continuations of one shared history. The root group is the whole tree.

    Attributes:
        members: The continuations; below the root, the first is the backbone's own.
        planned: How many were planned when the group was opened. A member that was lost later
            leaves `members` shorter, and the weights of the others as they were.
    """

    members: list[Segment]
    planned: int

    def mean_return(self) -> float:
        """Mean over the members of their mean return."""
        self.check()
        return sum(member.mean_return() for member in self.members) / len(self.members)

    def check(self) -> None:
        """Raise `TreeFormatError` unless the group has between one and `planned` members."""
        if not 1 <= len(self.members) <= self.planned:
            raise TreeFormatError(
                f"a group planned with {self.planned} members has {len(self.members)}; "
                "a group needs at least one member and at most as many as planned"
            )

    def visits(
        self, *, level: int = 0, weight: float = 1.0, reward_above: float = 0.0
    ) -> Iterator[Visit]:
        """Walk over all segments, every segment before those below it."""
        self.check()
        share = weight / self.planned
        for member in self.members:
            yield Visit(member, level, share, reward_above)
            if member.branch is not None:
                yield from member.branch.visits(
                    level=level + 1, weight=share, reward_above=reward_above + member.own_reward()
                )

    def leaves(self) -> Iterator[Visit]:
        """Walk over the segments at which an episode ends."""
        return (visit for visit in self.visits() if visit.segment.branch is None)

    def groups(self) -> Iterator[Group]:
        """Walk over this group and all groups below it."""
        yield self
        for member in self.members:
            if member.branch is not None:
                yield from member.branch.groups()

    def steps(self) -> Iterator[Step]:
        """Walk over all decisions; a shared prefix comes once."""
        for visit in self.visits():
            yield from visit.segment.steps

    def returns(self) -> list[float]:
        """The return of every finished episode, shared prefixes included."""
        return [visit.reward_above + visit.segment.own_reward() for visit in self.leaves()]

    def env_steps(self) -> int:
        """How many environment steps the tree cost; a shared prefix is paid once."""
        return sum(1 for _ in self.steps())

    def success_rate(self) -> float:
        """Unbiased estimate of the policy's success: leaves count by their weight.

        A leaf whose success is not known counts as a failure.
        """
        won = sum(visit.weight for visit in self.leaves() if visit.segment.success)
        return won / sum(visit.weight for visit in self.leaves())

    def is_constant(self) -> bool:
        """Whether all members have the same mean return, so that none of them is credited."""
        values = [member.mean_return() for member in self.members]
        return max(values) - min(values) < 1e-12

    def distinct_actions(self) -> int:
        """How many different actions the members start with."""
        return len({member.steps[0].action for member in self.members if member.steps})

    def to_json(self) -> dict[str, Any]:
        """The tree as dicts, lists, strings, numbers, booleans and None."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Group:
        """Rebuild a tree that `to_json` wrote.

        Raises:
            TreeFormatError: A field is missing or of the wrong kind; the message says where.
        """
        try:
            tree = msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise TreeFormatError(
                f"not a rollout tree: {error}; expected what Group.to_json() writes"
            ) from error
        for group in tree.groups():
            group.check()
        return tree
