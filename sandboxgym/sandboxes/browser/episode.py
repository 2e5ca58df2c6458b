"""`Episode`: a session, the agent's hands in it, and what the agent sees of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandboxgym.sandboxes.browser.acting import Actor, ImpossibleActionError
from sandboxgym.sandboxes.browser.actions import Action
from sandboxgym.sandboxes.browser.axtree import Bids, Node, text_of
from sandboxgym.sandboxes.browser.elements import document_of, node_at, path_of
from sandboxgym.sandboxes.browser.errors import (
    PageCrashedError,
    PageHungError,
    PageLimitError,
    SiteError,
)
from sandboxgym.sandboxes.browser.fingerprint import cookies_seen, probe, read_nodes
from sandboxgym.sandboxes.browser.options import Options
from sandboxgym.sandboxes.browser.recorder import Deed
from sandboxgym.sandboxes.browser.session import Session
from sandboxgym.sandboxes.browser.sites import Site
from sandboxgym.sandboxes.browser.tab import Tab


@dataclass(frozen=True)
class Sight:
    """What an agent sees of a session at rest.

    Attributes:
        url: Of the active tab.
        title: Of its document.
        axtree: Its accessibility tree as text.
        urls: Of all tabs.
        titles: Of all tabs.
        active: The number of the active tab.
        dialogs: What was shown during the last action, with how it was answered.
        refused: What was refused during the last action, with the reasons.
        downloads: How many files the tabs tried to save so far; see `Traffic.downloads`.
    """

    url: str
    title: str
    axtree: str
    urls: tuple[str, ...]
    titles: tuple[str, ...]
    active: int
    dialogs: tuple[str, ...]
    refused: tuple[str, ...]
    downloads: int


class Episode:
    """See this module's text. All of it runs in the browser's thread.

    Attributes:
        session: The browser's side.
        bids: The ids of elements, for each tab.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.bids: dict[Tab, Bids] = {}
        self.nodes: dict[Tab, list[Node]] = {}
        self._actor = Actor(session)

    @classmethod
    async def begin(cls, site: Site, options: Options, start: str) -> tuple[Episode, str]:
        """Open a site at a path; also what went wrong with that, or ""."""
        episode = cls(await Session.start(site, options))
        error = ""
        try:
            await episode.session.open(start)
        except (PageHungError, PageCrashedError, PageLimitError, SiteError) as failure:
            error = episode.broken_off(failure)
        seen = await episode.see()
        return episode, error or seen

    async def act(self, action: Action, text: str) -> str:
        """Do an action, and let its consequences happen.

        Returns:
            What went wrong, or "".
        """
        tab = self.session.active
        nodes: dict[str, int] = {}
        for name, bid in action.bids.items():
            node = self.bids[tab].backend_id(bid) if tab in self.bids else None
            if node is None:
                return f"there is no element {bid!r} on this page"
            nodes[name] = node
        paths: dict[str, str] = {}
        if nodes:
            root = await document_of(tab.cdp)
            for name, node in nodes.items():
                path = path_of(root, node)
                if path is None:
                    return f"the element {action[name]!r} is no longer on this page"
                paths[name] = path
        error = await self._perform(Deed(self.session.now, text, paths), action, nodes)
        seen = await self.see()
        return error or seen

    async def repeat(self, deed: Deed, action: Action) -> str | None:
        """Do again what a story tells of.

        Returns:
            What went wrong, or ""; None where an element of the story is not there.
        """
        await self.session.advance(deed.time)
        nodes: dict[str, int] = {}
        if deed.paths:
            root = await document_of(self.session.active.cdp)
            for name, path in deed.paths.items():
                node = node_at(root, path)
                if node is None:
                    return None
                nodes[name] = node
        return await self._perform(deed, action, nodes)

    async def see(self) -> str:
        """Look; where a tab cannot be looked at, at the empty one that takes its place.

        Returns:
            What went wrong, or "".
        """
        error = ""
        while True:
            try:
                await self.look()
                return error
            except (PageHungError, PageCrashedError, PageLimitError) as failure:
                error = error or self.broken_off(failure)

    async def look(self) -> None:
        """See what all tabs show now, and give ids to what is new.

        Raises:
            PageHungError, PageCrashedError, PageLimitError: As `Session.read`.
        """
        read = await self.session.read(read_nodes)
        tabs = self.session.tabs
        known, self.nodes, self.bids = self.bids, {}, {}
        for tab, (document, nodes) in zip(tabs, read, strict=True):
            bids = known.get(tab)
            self.bids[tab] = bids if bids and bids.document == document else Bids(document)
            self.bids[tab].assign(nodes)
            self.nodes[tab] = nodes

    def sight(self) -> Sight:
        """What was seen at the last look."""
        session = self.session
        tabs = session.tabs
        active = tabs.index(session.active)
        titles = tuple(self._title(tab) for tab in tabs)
        urls = tuple(tab.url for tab in tabs)
        return Sight(
            url=urls[active],
            title=titles[active],
            axtree=self._text(session.active),
            urls=urls,
            titles=titles,
            active=active,
            dialogs=tuple(
                f"{d.kind} {'accepted' if d.accepted else 'dismissed'}: {d.message}"
                for tab in tabs
                for d in tab.dialogs
            ),
            refused=(*(what for tab in tabs for what in tab.refused), *session.refused),
            downloads=sum(tab.traffic.downloads for tab in tabs),
        )

    async def fingerprint(self) -> dict[str, Any]:
        """All that can be found out about the session, as plain data; see `fingerprint.py`.

        Raises:
            PageHungError, PageCrashedError: As `Session.read`.
        """
        session = self.session
        cookies, databases, probes = await asyncio.gather(
            session.cookies(), session.databases(), session.read(probe)
        )
        tabs = session.tabs
        return {
            "time": session.now,
            "active": tabs.index(session.active),
            "tabs": [
                {
                    "url": tab.url,
                    "opener": tabs.index(tab.opener) if tab.opener in tabs else None,
                    "tree": self._text(tab).split("\n"),
                    "next_bid": self.bids[tab].next,
                    "frames": frames,
                }
                for tab, frames in zip(tabs, probes, strict=True)
            ],
            "hands": [
                session.hands.x,
                session.hands.y,
                list(session.hands.held),
                session.hands.buttons,
            ],
            "cookies": cookies_seen(cookies),
            "databases": databases,
        }

    async def close(self) -> None:
        """End it, and all its pages."""
        await self.session.close()

    async def _perform(self, deed: Deed, action: Action, nodes: Mapping[str, int]) -> str:
        try:
            await self.session.perform(deed, lambda: self._actor.do(action, dict(nodes)))
        except ImpossibleActionError as error:
            return str(error)
        except (PageHungError, PageCrashedError, PageLimitError, SiteError) as error:
            return self.broken_off(error)
        return ""

    def broken_off(self, error: Exception) -> str:
        """Note that a tab could not go on, unless it was the site's fault; what to say of it."""
        if not isinstance(error, SiteError):
            self.session.recorder.break_off(str(error))
        return f"{type(error).__name__}: {error}"

    def _text(self, tab: Tab) -> str:
        return text_of(self.nodes[tab], self.bids[tab])

    def _title(self, tab: Tab) -> str:
        nodes = self.nodes[tab]
        return nodes[0].name if nodes and nodes[0].role == "RootWebArea" else ""
