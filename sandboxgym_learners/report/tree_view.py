"""Lay a rollout tree out as a drawing: decisions from left to right, siblings below each other.

```
lane 0   ●──●──●─┬─●──●──●          a root, and the continuation of its backbone
lane 1           ├─●──●             a fork
lane 2           └─●──●──●──●       a fork
lane 3   ●──●──●──●──●              the next root
```

Each episode has a lane. A backbone keeps its lane through its branch points; its forks get the
lanes below. Everything is numbered and flat, as the page needs it: nodes are decisions, parents
before children. Texts and lists of actions are kept once however often they occur; of a prompt
only what differs from the one before it, since most prompts repeat the whole story so far.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from sandboxgym.core.characters import whole
from sandboxgym_learners.report.load import SavedTree
from sandboxgym_learners.tree import Group, Segment, Step

K = TypeVar("K", str, tuple[int, ...])

ROOT = -1
"""The parent of the first decisions: the reset."""

NOTHING = -1
"""The number of a text that is not there."""

LONGEST_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class Node:
    """One decision. Texts are given by their number.

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
        value: What a critic expected.
        prompt: What the agent read, in `TreeView.prompts`.
        menu: What it chose among, in `TreeView.menus`.
        written: All that it wrote, in `TreeView.texts`; `NOTHING` where it chose.
        action: What it did, in `TreeView.texts`.
        observation: What it saw then, in `TreeView.texts`.
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
    value: float
    prompt: int
    menu: int
    written: int
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
        self.prompts: dict[str, int] = {}
        self.menus: dict[tuple[int, ...], int] = {}
        self.entropy_of: set[str] = set()
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
            "prompts": front_coded(list(self.prompts)),
            "menus": [list(menu) for menu in self.menus],
            "entropy_of": " and ".join(sorted(self.entropy_of)),
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
            constant=group.is_constant(),
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
        self.entropy_of.add(step.entropy_of)
        menu = tuple(self._text(candidate) for candidate in step.candidates)
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
            value=step.value,
            prompt=_number(self.prompts, _clean(step.prompt)),
            menu=_number(self.menus, menu),
            written=self._text(step.text) if step.text else NOTHING,
            action=self._text(step.action),
            observation=self._text(step.observation),
        )

    def _text(self, text: str) -> int:
        return _number(self.texts, _clean(text))


def summary(saved: SavedTree) -> dict[str, Any]:
    """What the page says of a tree before it is unpacked."""
    return {
        "algo": saved.algo,
        "seed": saved.seed,
        "update": saved.update,
        "task": saved.task,
        "episodes": sum(1 for _ in saved.tree.leaves()),
        "success": saved.tree.success_rate(),
    }


def front_coded(texts: list[str]) -> list[tuple[int, str]]:
    """Each text as the length of what it shares with the one before it, and the rest.

    The length is in UTF-16 units, as JavaScript counts.
    """
    coded = []
    before = ""
    for text in texts:
        shared = _common(before, text)
        coded.append((len(text[:shared].encode("utf-16-le")) // 2, text[shared:]))
        before = text
    return coded


def _common(one: str, two: str) -> int:
    """How many characters two texts begin with in common, by bisection."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _number(known: dict[K, int], key: K) -> int:
    return known.setdefault(key, len(known))


def _clean(text: str) -> str:
    """A text that a page can hold: not without end, and no half of a character in it."""
    if len(text) > LONGEST_TEXT:
        left_out = len(text) - LONGEST_TEXT
        text = f"{text[:LONGEST_TEXT]}… ({left_out} more characters are not shown)"
    return whole(text)


def _short(value: Any) -> Any:
    """Numbers with the digits that a reader can use; the file gets a third smaller."""
    return float(f"{value:.5g}") if isinstance(value, float) else value
