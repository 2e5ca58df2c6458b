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
from sandboxgym.sandboxes.browser.scripts import script
from sandboxgym.sandboxes.browser.tab import Tab

PROBE = f"({script('probe.js')})()"


async def read_nodes(tab: Tab) -> list[Node]:
    """The accessibility tree of a tab, all frames included."""
    frames = await frame_ids(tab)
    below = frames[1:]
    trees, owners = await asyncio.gather(
        _all(tab, "Accessibility.getFullAXTree", frames), _all(tab, "DOM.getFrameOwner", below)
    )
    return nodes_of(
        {frame: tree["nodes"] for frame, tree in zip(frames, trees, strict=True)},
        {owner["backendNodeId"]: frame for frame, owner in zip(below, owners, strict=True)},
        frames[0],
    )


async def probe(tab: Tab) -> list[dict[str, Any]]:
    """What `probe.js` finds in each frame of a tab."""
    frames = await frame_ids(tab)
    found = await asyncio.gather(*(tab.evaluate(PROBE, frame_id=frame) for frame in frames))
    return list(found)


async def frame_ids(tab: Tab) -> list[str]:
    """The frames of a tab: the main one, then each with those in it."""
    tree = (await tab.cdp.send("Page.getFrameTree"))["frameTree"]
    found: list[str] = []
    pending = [tree]
    while pending:
        frame = pending.pop()
        found.append(frame["frame"]["id"])
        pending.extend(reversed(frame.get("childFrames", ())))
    return found


def seen(nodes: list[Node]) -> list[list[Any]]:
    """An accessibility tree as plain data, without Chromium's numbers."""
    return [[node.depth, node.role, node.name, node.value, *node.states] for node in nodes]


def cookies_seen(cookies: list[dict[str, Any]]) -> list[list[Any]]:
    """Cookies as a server sees them; when they expire is told to the second."""
    return sorted(
        [
            cookie["name"],
            cookie["value"],
            cookie["domain"],
            cookie["path"],
            cookie.get("httpOnly", False),
            round(cookie.get("expires", -1)),
        ]
        for cookie in cookies
    )


def difference(expected: dict[str, Any], found: dict[str, Any]) -> str | None:
    """The first difference of two fingerprints, to be read, or None."""
    first = first_difference(expected, found)
    return None if first is None else str(first)


async def _all(tab: Tab, method: str, frames: list[str]) -> list[dict[str, Any]]:
    return list(await asyncio.gather(*(tab.cdp.post(method, frameId=frame) for frame in frames)))
