"""Chromium's accessibility tree as a text with stable ids: what an agent sees of a page.

Chromium gives one tree a frame (`Accessibility.getFullAXTree`). They are put together at the
frames' owners, and thinned out: what has no meaning of its own gives way to its children. Shadow
roots are part of Chromium's tree already.

Ids are kept on our side, so that a page cannot see them. A node that stays in the tree keeps its
id; one that leaves the tree and comes back gets a new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_TEXT = 1_000_000
MAX_DEPTH = 400

_LEFT_OUT = frozenset({"InlineTextBox", "ListMarker", "LineBreak"})
_GIVES_WAY = frozenset({"none", "generic", "MenuListPopup"})
_FLAGS = ("focused", "disabled", "required", "readonly", "selected", "modal", "multiselectable")
_VALUES = ("checked", "pressed", "expanded", "hasPopup", "valuetext")
_NO_BID = frozenset({"RootWebArea"})


@dataclass(frozen=True)
class Node:
    """One line of the text.

    Attributes:
        depth: How far it is indented.
        backend_id: Chromium's number of the DOM node; another one in each process.
    """

    depth: int
    backend_id: int
    role: str
    name: str
    value: str
    states: tuple[str, ...]

    def text(self, bid: str | None) -> str:
        """The line."""
        parts = [self.role if bid is None else f"[{bid}] {self.role}"]
        if self.name or self.role != "generic":
            parts[0] += f" {self.name!r}"
        if self.value:
            parts[0] += f" value={self.value!r}"
        return "\t" * self.depth + ", ".join([*parts, *self.states])


class Bids:
    """The ids of the elements of one document, in the order in which they appeared.

    Args:
        document: Which one; Chromium's name of it.

    Attributes:
        next: The number that the next new element gets.
        of: Ids by `Node.backend_id`, of the nodes in the tree that was last seen.
    """

    def __init__(self, document: str) -> None:
        self.document = document
        self.next = 1
        self.of: dict[int, str] = {}

    def assign(self, nodes: Sequence[Node]) -> None:
        """Give ids to the nodes that have none yet, and forget those that are gone."""
        seen: dict[int, str] = {}
        for node in nodes:
            if node.role in _NO_BID:
                continue
            bid = self.of.get(node.backend_id)
            if bid is None:
                bid, self.next = str(self.next), self.next + 1
            seen[node.backend_id] = bid
        self.of = seen

    def backend_id(self, bid: str) -> int | None:
        """The node that has an id in the tree that was last seen."""
        return next((number for number, b in self.of.items() if b == bid), None)

    def as_list(self, nodes: Sequence[Node]) -> list[str]:
        """The ids in the order of the tree, which tell them where the numbers are others."""
        return [self.of[node.backend_id] for node in nodes if node.role not in _NO_BID]

    def adopt(self, nodes: Sequence[Node], bids: Sequence[str], next_number: int) -> None:
        """Take ids from another browser's page that shows the same tree.

        Raises:
            ValueError: The tree has another number of elements.
        """
        named = [node for node in nodes if node.role not in _NO_BID]
        pairs = zip(named, bids, strict=True)
        self.of = {node.backend_id: bid for node, bid in pairs}
        self.next = next_number


def text_of(nodes: Sequence[Node], bids: Bids) -> str:
    """The whole tree as text, cut where it is very long."""
    lines: list[str] = []
    length = 0
    for number, node in enumerate(nodes):
        line = node.text(bids.of.get(node.backend_id))
        length += len(line) + 1
        if length > MAX_TEXT - 100:
            lines.append(f"... and {len(nodes) - number} more lines")
            break
        lines.append(line)
    return "\n".join(lines)


def nodes_of(
    trees: Mapping[str, Sequence[dict[str, Any]]], owners: Mapping[int, str], main_frame: str
) -> list[Node]:
    """Put the trees of the frames of a page together.

    Args:
        trees: What `Accessibility.getFullAXTree` gave for each frame, by the frame's id.
        owners: The frame that each `<iframe>` shows, by the element's backend node id.
        main_frame: The page's own frame.
    """
    return _Walk(trees, owners).nodes(main_frame)


@dataclass(frozen=True, slots=True)
class _Place:
    """A node of Chromium's that is still to be looked at, where it is met."""

    raw: dict[str, Any]
    by_id: Mapping[str, dict[str, Any]]  # of its frame
    depth: int
    parent_name: str


class _Walk:
    """Through all trees in the order of the text. Pages may nest deeper than Python calls do."""

    def __init__(
        self, trees: Mapping[str, Sequence[dict[str, Any]]], owners: Mapping[int, str]
    ) -> None:
        self._trees = trees
        self._owners = owners
        self._pending: list[_Place] = []  # the next one last

    def nodes(self, frame: str) -> list[Node]:
        found: list[Node] = []
        self._enter(frame, 0)
        while self._pending:
            node = self._visit(self._pending.pop())
            if node is not None:
                found.append(node)
        return found

    def _enter(self, frame: str, depth: int) -> None:
        tree = self._trees.get(frame, ())
        if tree:
            by_id = {node["nodeId"]: node for node in tree}
            self._pending.append(_Place(tree[0], by_id, depth, ""))

    def _visit(self, place: _Place) -> Node | None:
        """The line of a node, if it has one; what is below it comes next."""
        raw, depth = place.raw, place.depth
        role = str(_value(raw, "role"))
        name = str(_value(raw, "name")).strip()
        if role in _LEFT_OUT or depth > MAX_DEPTH:
            return None
        if role == "StaticText" and (not name or name == place.parent_name):
            return None  # what it says stands in its parent's line
        properties = {p["name"]: p["value"].get("value") for p in raw.get("properties", ())}
        inside = _inside(raw, place.by_id, properties)
        if raw.get("ignored") or (role in _GIVES_WAY and not _interesting(raw, properties, inside)):
            self._descend(place, inside, depth, place.parent_name)
            return None
        backend_id = raw.get("backendDOMNodeId")
        if backend_id is None:  # made by the style sheet, as by `content: "x"`
            backend_id = -int(raw["nodeId"].lstrip("-"))
        if backend_id in self._owners:
            self._enter(self._owners[backend_id], depth + 1)
        self._descend(place, inside, depth + 1, name)
        value = str(_value(raw, "value"))
        return Node(depth, backend_id, role, name, value, _states(properties))

    def _descend(
        self, place: _Place, inside: Sequence[dict[str, Any]], depth: int, name: str
    ) -> None:
        below = (_Place(raw, place.by_id, depth, name) for raw in reversed(inside))
        self._pending.extend(below)


def _inside(
    raw: dict[str, Any], by_id: Mapping[str, dict[str, Any]], properties: Mapping[str, Any]
) -> list[dict[str, Any]]:
    if properties.get("editable") == "plaintext":
        return []  # its text is its value
    return [by_id[child] for child in raw.get("childIds", ()) if child in by_id]


def _interesting(
    raw: dict[str, Any], properties: Mapping[str, Any], inside: Sequence[dict[str, Any]]
) -> bool:
    """Whether a generic node has something to say: Chromium keeps those that listen to clicks."""
    if _value(raw, "role") != "generic" or raw.get("ignored"):
        return False
    return bool(_value(raw, "name") or properties.get("focusable") or not inside)


def _states(properties: Mapping[str, Any]) -> tuple[str, ...]:
    flags = [name for name in _FLAGS if properties.get(name)]
    values = [f"{name}={properties[name]!r}" for name in _VALUES if name in properties]
    return (*flags, *values)


def _value(raw: dict[str, Any], field: str) -> Any:
    return raw.get(field, {}).get("value", "")
