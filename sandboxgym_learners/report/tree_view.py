"""Lay a rollout tree out as a drawing: decisions from left to right, siblings below each other.

```
lane 0   ●──●──●─┬─●──●──●          a root, and the continuation of its backbone
lane 1           ├─●──●             a fork
lane 2           └─●──●──●──●       a fork
lane 3   ●──●──●──●──●              the next root
```

Each episode has a lane. A backbone keeps its lane through its branch points; its forks get the
lanes below. Everything is numbered and flat, as the page needs it: nodes are decisions, parents
before children, and texts are kept once however often they occur.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from sandboxgym_learners.report.load import SavedTree
from sandboxgym_learners.tree import Group, Segment, Step

ROOT = -1
"""The parent of the first decisions: the reset."""

LONGEST_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class Node:
    """One decision. Texts are given by their number in `TreeView.texts`.

    Attributes:
        parent: The node before it, or `ROOT`.
        group: The group that its segment is a member of.
        member: Which member that is.
        depth: Its column: the number of decisions before it.
        lane: Its row.
        entropy: H(π(· | prompt)) in nats.
        chance: π(action | prompt).
        reward: What the action was paid.
        advantage: Credit of the action.
        weight: Share of this decision in the gradient.
        prompt: What the agent read.
        candidates: What it chose among.
        action: What it did.
        observation: What it saw then.
    """

    parent: int
    group: int
    member: int
    depth: int
    lane: int
    entropy: float
    chance: float
    reward: float
    advantage: float
    weight: float
    prompt: int
    candidates: list[int]
    action: int
    observation: int


@dataclass(frozen=True, slots=True)
class Fan:
    """A group as drawn: a vertical line from which its members start.

    Attributes:
        parent: The last node before it, or `ROOT`.
        depth: The column of its members' first decisions.
        level: Number of branch points on the path, itself included; 0 for the root group.
        stack: How many groups open above it in the same column, no decision between them.
        lanes: The row of each member.
        first: The first node of each member; `ROOT` where it took no decision.
        returns: Mean return of the episodes through each member, shared prefix included.
        planned: How many members were planned.
        constant: Whether all members returned the same, so that none of them is credited.
        actions: How many different actions the members start with.
    """

    parent: int
    depth: int
    level: int
    stack: int
    lanes: list[int]
    first: list[int]
    returns: list[float]
    planned: int
    constant: bool
    actions: int


@dataclass(frozen=True, slots=True)
class End:
    """The end of an episode, one column after its last decision."""

    node: int
    lane: int
    depth: int
    total: float
    success: bool | None


class TreeView:
    """The flat drawing of one tree."""

    def __init__(self, tree: Group) -> None:
        self.nodes: list[Node] = []
        self.fans: list[Fan] = []
        self.ends: list[End] = []
        self.texts: dict[str, int] = {}
        self.lanes = 0
        self._add_group(tree, parent=ROOT, lane=0, depth=0, above=None, reward_above=0.0)

    def to_json(self) -> dict[str, Any]:
        """Columns of numbers, one list for each field of a node, and the rest as it is."""
        names = [field.name for field in fields(Node)]
        return {
            "lanes": self.lanes,
            "nodes": {name: [_short(getattr(node, name)) for node in self.nodes] for name in names},
            "fans": [asdict(fan) for fan in self.fans],
            "ends": [asdict(end) for end in self.ends],
            "texts": list(self.texts),
        }

    def _add_group(
        self,
        group: Group,
        *,
        parent: int,
        lane: int,
        depth: int,
        above: Fan | None,
        reward_above: float,
    ) -> None:
        """Add a group whose first member takes `lane`, and all below it."""
        number = len(self.fans)
        values = [member.mean_return() for member in group.members]
        fan = Fan(
            parent=parent,
            depth=depth,
            level=above.level + 1 if above else 0,
            stack=above.stack + 1 if above and above.depth == depth else 0,
            lanes=[],
            first=[],
            returns=[reward_above + value for value in values],
            planned=group.planned,
            constant=max(values) - min(values) < 1e-12,
            actions=group.distinct_actions(),
        )
        self.fans.append(fan)
        for index, segment in enumerate(group.members):
            member_lane = lane if index == 0 else self.lanes
            fan.lanes.append(member_lane)
            self.lanes = max(self.lanes, member_lane + 1)
            first = len(self.nodes)
            self._add_segment(segment, parent, number, index, member_lane, depth, reward_above)
            fan.first.append(first if first < len(self.nodes) else ROOT)

    def _add_segment(
        self,
        segment: Segment,
        parent: int,
        group: int,
        member: int,
        lane: int,
        depth: int,
        reward_above: float,
    ) -> None:
        for step in segment.steps:
            self.nodes.append(self._node(step, parent, group, member, lane, depth))
            parent = len(self.nodes) - 1
            depth += 1
        total = reward_above + segment.own_reward()
        if segment.branch is None:
            self.ends.append(End(parent, lane, depth, total, segment.success))
            return
        self._add_group(
            segment.branch,
            parent=parent,
            lane=lane,
            depth=depth,
            above=self.fans[group],
            reward_above=total,
        )

    def _node(
        self, step: Step, parent: int, group: int, member: int, lane: int, depth: int
    ) -> Node:
        return Node(
            parent=parent,
            group=group,
            member=member,
            depth=depth,
            lane=lane,
            entropy=step.entropy,
            chance=math.exp(min(step.logprob, 0.0)),
            reward=step.reward,
            advantage=step.advantage,
            weight=step.weight,
            prompt=self._text(step.prompt),
            candidates=[self._text(candidate) for candidate in step.candidates],
            action=self._text(step.action),
            observation=self._text(step.observation),
        )

    def _text(self, text: str) -> int:
        if len(text) > LONGEST_TEXT:
            left_out = len(text) - LONGEST_TEXT
            text = f"{text[:LONGEST_TEXT]}… ({left_out} more characters are not shown)"
        return self.texts.setdefault(text, len(self.texts))


def drawing(saved: SavedTree) -> dict[str, Any]:
    """A kept tree as the page needs it."""
    return {
        "algo": saved.algo,
        "seed": saved.seed,
        "update": saved.update,
        "task": saved.task,
        "episodes": sum(1 for _ in saved.tree.leaves()),
        "success": saved.tree.success_rate(),
        **TreeView(saved.tree).to_json(),
    }


def _short(value: Any) -> Any:
    """Numbers with the digits that a reader can use; the file gets a third smaller."""
    return float(f"{value:.5g}") if isinstance(value, float) else value
