"""What a session looks like from outside, as plain data: equal where two sessions are the same.

For each tab: its address, its accessibility tree, and for each of its frames what `probe.js` finds
(fields, focus, selection, scrolling, canvas pixels, animations, storage, a hash of the markup). For
the session: cookies, IndexedDB, time, which tab is active. Numbers that differ from browser to
browser are in none of it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from sandboxgym.core.digest import first_difference
from sandboxgym.sandboxes.browser.axtree import Node, nodes_of
from sandboxgym.sandboxes.browser.errors import PageLimitError
from sandboxgym.sandboxes.browser.scripts import script
from sandboxgym.sandboxes.browser.tab import Tab

PROBE = f"({script('probe.js')})()"
_COUNT = f"({script('count.js')})()"
_STATE = "JSON.stringify(history.state)"


async def read_nodes(tab: Tab) -> tuple[str, list[Node]]:
    """Chromium's name of a tab's document, and its accessibility tree, all frames included.

    Raises:
        PageLimitError: It has too many nodes.
    """
    (document, frames), counted = await asyncio.gather(
        _frames(tab), tab.cdp.post("Memory.getDOMCounters")
    )
    if counted["nodes"] > tab.options.limits.nodes:  # with what is no more, and of other tabs
        await _check_size(tab, frames)
    below = frames[1:]
    trees, owners = await asyncio.gather(
        _all(tab, "Accessibility.getFullAXTree", frames), _all(tab, "DOM.getFrameOwner", below)
    )
    nodes = nodes_of(
        {frame: tree["nodes"] for frame, tree in zip(frames, trees, strict=True)},
        {owner["backendNodeId"]: frame for frame, owner in zip(below, owners, strict=True)},
        frames[0],
    )
    return document, nodes


async def _check_size(tab: Tab, frames: list[str]) -> None:
    counts = await asyncio.gather(*(tab.evaluate(_COUNT, frame_id=frame) for frame in frames))
    nodes, limit = sum(counts), tab.options.limits.nodes
    if nodes > limit:
        raise PageLimitError(
            f"{tab.url} has {nodes} elements and texts, over the limit of {limit}: raise "
            "Limits.nodes, and Options.wall_s with it"
        )


async def probe(tab: Tab) -> list[dict[str, Any]]:
    """What `probe.js` finds in each frame of a tab."""
    _, frames = await _frames(tab)
    state, *found = await asyncio.gather(
        _history_state(tab), *(tab.evaluate(PROBE, frame_id=frame) for frame in frames)
    )
    return [{**found[0], "state": state}, *found[1:]]


async def _history_state(tab: Tab) -> str:
    """The state that the main document's entry in the history has, as JSON.

    It is asked for in the page's own world: asked for elsewhere, Chromium would from then on give
    the page an older one. What of the page's would do anything when it is asked is not called.
    """
    found = await tab.cdp.send(
        "Runtime.evaluate", expression=_STATE, returnByValue=True, throwOnSideEffect=True
    )
    return str(found["result"].get("value", found["result"].get("className", "")))


def cookies_seen(cookies: list[dict[str, Any]]) -> list[list[Any]]:
    """Cookies without the time at which they expire, which goes by the machine's clock."""
    return sorted(
        [
            cookie["name"],
            cookie["value"],
            cookie["domain"],
            cookie["path"],
            cookie.get("httpOnly", False),
            cookie.get("session", True),
        ]
        for cookie in cookies
    )


def difference(expected: dict[str, Any], found: dict[str, Any]) -> str | None:
    """The first difference of two fingerprints, to be read, or None."""
    first = first_difference(expected, found)
    return None if first is None else str(first)


async def _frames(tab: Tab) -> tuple[str, list[str]]:
    """The name of the document, and the ids of its frames: the main one, then each with its own."""
    tree = (await tab.cdp.send("Page.getFrameTree"))["frameTree"]
    found: list[str] = []
    pending = [tree]
    while pending:
        frame = pending.pop()
        found.append(frame["frame"]["id"])
        pending.extend(reversed(frame.get("childFrames", ())))
    return str(tree["frame"]["loaderId"]), found


async def _all(tab: Tab, method: str, frames: list[str]) -> list[dict[str, Any]]:
    return list(await asyncio.gather(*(tab.cdp.post(method, frameId=frame) for frame in frames)))
