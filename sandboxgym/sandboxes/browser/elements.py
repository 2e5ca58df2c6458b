"""Where an element is in its page, so that it is found again in another browser's page.

An element's number (`backendNodeId`) is Chromium's own. Its path is the same wherever the same
document is shown: steps from the main document down, through frames and shadow roots, closed ones
included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandboxgym.sandboxes.browser.cdp import CDPSession

# Of nodes that are described in one answer. Chromium's answers have at most 300 levels, of which a
# node takes two, and one in a shadow root four.
_DEPTH = 60


async def document_of(cdp: CDPSession) -> dict[str, Any]:
    """The DOM of a page with all its frames and shadow roots, as the protocol describes nodes."""
    described = await cdp.send("DOM.getDocument", depth=_DEPTH, pierce=True)
    cdp.post("DOM.disable")  # or every change of the DOM would be reported from now on
    root: dict[str, Any] = described["root"]
    await _describe_the_rest(cdp, root)
    return root


async def _describe_the_rest(cdp: CDPSession, root: dict[str, Any]) -> None:
    pending = [root]
    while pending:
        node = pending.pop()
        if node.get("childNodeCount") and "children" not in node:
            number = node["backendNodeId"]
            deeper = await cdp.send(
                "DOM.describeNode", backendNodeId=number, depth=_DEPTH, pierce=True
            )
            node.update(deeper["node"])
        pending.extend(child for _, child in _below(node))


def path_of(root: dict[str, Any], backend_id: int) -> str | None:
    """The path of a node, or None where it is not in the document."""
    pending: list[tuple[dict[str, Any], str]] = [(root, "")]
    while pending:
        node, path = pending.pop()
        if node["backendNodeId"] == backend_id:
            return path
        pending.extend((child, f"{path}/{step}") for step, child in _below(node))
    return None


def node_at(root: dict[str, Any], path: str) -> int | None:
    """The backend node id of the node at a path, or None where there is none."""
    node = root
    for step in path.split("/")[1:]:
        below = dict(_below(node))
        if step not in below:
            return None
        node = below[step]
    number: int = node["backendNodeId"]
    return number


def _below(node: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for index, child in enumerate(node.get("children", ())):
        yield str(index), child
    for index, child in enumerate(node.get("shadowRoots", ())):
        yield f"shadow{index}", child
    for child in node.get("pseudoElements", ()):
        yield child["pseudoType"], child
    if "contentDocument" in node:
        yield "document", node["contentDocument"]
