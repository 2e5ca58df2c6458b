"""What a session's present state came from, kept as short as it can be and still say it all.

A `Story` begins at a moment that can be made again in a new browser: an only tab asks for a
document, with certain cookies, storage and history. It goes on with every response that was served
since and every action since. Told again (`retelling.py`), it gives the same page: closures, drafts,
timers.

Each new document of an only tab begins a new story, unless something from before would still matter
and cannot be made again: then the story just goes on, and stays true. So it does while there are
several tabs, for a form that was posted, for a document that was gone back to or loaded again, and
after one that wrote its own history (`pushState`).
"""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from sandboxgym.sandboxes.browser.cdp import CDPSession
from sandboxgym.sandboxes.browser.errors import ProtocolError, UncapturedPageError
from sandboxgym.sandboxes.browser.recording import Exchange
from sandboxgym.sandboxes.browser.settle import EPSILON
from sandboxgym.sandboxes.browser.sites import Request, Response

_TRIES, _PAUSE_S = 50, 0.01
_OF_COOKIES = ("name", "value", "domain", "path", "httpOnly", "secure", "sameSite", "priority")
_FAR_FUTURE = 4_102_444_800.0  # the year 2100
MAX_HISTORY = 40  # Chromium drops the oldest entry beyond 50


@dataclass
class Start:
    """The moment at which the first document of a story was asked for.

    Attributes:
        time: Milliseconds of virtual time since the session began.
        url: What was asked for; "" for the empty tab that a session begins with.
        referrer: What the document was told it comes from.
        history: URLs of the tab's earlier documents, oldest first.
        replaces: Whether it took the place of another document in the history.
        left: Whether the entry that it took says still that another document has left it.
        cookies: Those of the session, as `Storage.setCookies` takes them.
        storage: Of the tab and the origin: pairs under "local" and "session", and the window's
            "name".
        databases: What `indexeddb.js` dumped.
        mouse: Where the mouse was.
        pointer: Where the tab believes it to be; [] if it was never over this tab.
    """

    time: float = 0.0
    url: str = ""
    referrer: str = ""
    history: list[str] = field(default_factory=list)
    replaces: bool = False
    left: bool = False
    cookies: list[dict[str, Any]] = field(default_factory=list)
    storage: dict[str, Any] = field(default_factory=dict)
    databases: list[dict[str, Any]] = field(default_factory=list)
    mouse: list[float] = field(default_factory=lambda: [0.0, 0.0])
    pointer: list[float] = field(default_factory=list)


@dataclass
class Deed:
    """An action that was done.

    Attributes:
        time: When, in milliseconds of virtual time.
        text: What the agent wrote.
        paths: Where the elements are that it names (`elements.path_of`), by the argument's name.
    """

    time: float
    text: str
    paths: dict[str, str]


@dataclass
class Story:
    """See this module's text."""

    start: Start = field(default_factory=Start)
    exchanges: list[Exchange] = field(default_factory=list)
    deeds: list[Deed] = field(default_factory=list)

    def copy(self) -> Story:
        """A story that does not go on with this one."""
        return Story(replace(self.start), list(self.exchanges), list(self.deeds))


class Responder(Protocol):
    """What can answer requests in place of a site."""

    def respond(self, request: Request) -> Response | None:
        """The answer; None refuses the request."""
        ...


class Stage(Protocol):
    """What a recorder asks of the session that it records."""

    async def cookies(self) -> list[dict[str, Any]]:
        """All cookies."""
        ...

    async def databases(self) -> list[dict[str, Any]]:
        """All of IndexedDB."""
        ...

    def blank_start(self) -> Start | None:
        """Time and mouse of this moment; None where a story cannot begin now."""
        ...


class Recorder:
    """Keeps the story of a session.

    Attributes:
        story: Up to now.
        replay: Answers in place of the site while it is not None.
        staging: Whether what is opened is only passed through, and no story.
        uses_databases: Whether a page has opened a database since the session began.
        keeps_more: Whether a page has put something where nobody reads it (cache storage, its own
            file system): then no new story begins any more.
        broken: Why the story says no longer what the present state came from, or None.
    """

    def __init__(self, stage: Stage, epoch_ms: float) -> None:
        self._epoch_ms = epoch_ms
        self.story = Story()
        self.replay: Responder | None = None
        self.staging = False
        self.uses_databases = False
        self.keeps_more = False
        self.broken: str | None = None
        self._before: Story | None = None  # the story before this one
        self._stage = stage
        self._coming: Start | None = None
        self._chain: list[Exchange] = []  # of the navigation that is under way
        self._entries: dict[int, bool] = {}  # of the tab's history: whether it can be made again
        self._document_is_plain = True

    async def asked(self, cdp: CDPSession, request: Request, navigation: str) -> None:
        """A main frame asks for a document; nothing of it has been answered yet.

        Args:
            cdp: The tab.
            request: The first of the navigation.
            navigation: Chromium's type of it, "differentDocument" for a plain one.
        """
        self._coming, self._chain = None, []
        if self.staging:
            return
        history = await _history(cdp)
        if history is None:
            self._document_is_plain = False
            return
        index, entries = history["currentIndex"], history["entries"]
        before = None
        for entry in entries[: index + 1]:  # one at the same URL is a frame's, which went elsewhere
            plain = self._document_is_plain and entry["url"] != before
            self._entries.setdefault(entry["id"], plain)
            before = entry["url"]
        plain = request.method == "GET" and navigation == "differentDocument"
        self._document_is_plain = request.method == "GET"
        repeatable = all(self._entries[entry["id"]] for entry in entries[: index + 1])
        at_the_end = index == len(entries) - 1 and index < MAX_HISTORY
        if not (plain and repeatable and at_the_end):
            return
        start = self._stage.blank_start()
        if start is None or self.keeps_more:
            return
        start.url = request.url
        start.referrer = request.headers.get("referer", "")
        start.history = [entry["url"] for entry in entries]
        start.cookies = [lasting(cookie) for cookie in await self._stage.cookies()]
        try:
            start.databases = await self._stage.databases()
        except UncapturedPageError:
            return
        self._coming = start

    def served(
        self, request: Request, response: Response, *, navigates: bool, brings_document: bool
    ) -> None:
        """A request was answered.

        Args:
            request: Whatever was asked for.
            response: By the site.
            navigates: Whether a main frame asked for a document.
            brings_document: Whether it got one with this: no redirect, no download.
        """
        exchange = Exchange(request, response)
        if not navigates:
            self.story.exchanges.append(exchange)
            return
        self._chain.append(exchange)
        if brings_document and self._coming is not None:
            self._before, self.story = self.story, Story(self._coming, self._chain)
            self.broken = None
        elif not is_redirect(response):
            self.story.exchanges.extend(self._chain)
        else:
            return
        self._coming, self._chain = None, []

    def brought_no_document(self, url: str) -> None:
        """What was served last turned out to be a file."""
        exchanges, begun = self.story.exchanges, bool(self.story.start.storage)
        if exchanges and exchanges[-1].request.url == url and not begun:
            self._go_on_with_the_last()

    def found(self, payload: str) -> None:
        """What `document_start.js` reported of a main document that begins."""
        found = json.loads(payload)
        start = self.story.start
        if start.storage or not start.url:
            return  # not the document that the story begins with
        if found["date"] != math.floor(self._epoch_ms + start.time + EPSILON):
            self._go_on_with_the_last()  # it was asked for between two moments that can be made
            return
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # halves of characters, which no snapshot can hold
            self._go_on_with_the_last()
            return
        start.replaces = found["length"] == len(start.history)
        start.left = found["left"]
        if start.replaces:
            start.history = start.history[:-1]
        start.storage = {name: found[name] for name in ("local", "session", "name")}

    def _go_on_with_the_last(self) -> None:
        """Take it back that a new story began."""
        if self._before is not None:
            self._before.exchanges.extend(self.story.exchanges)
            self.story, self._before = self._before, None

    def moved_within_document(self, kind: str) -> None:
        """A tab's document changed its own entry of the history."""
        if kind != "fragment":
            self._document_is_plain = False

    def break_off(self, reason: str) -> None:
        """Something happened that cannot be told: where a page hung, say, or crashed."""
        self.broken = reason

    def did(self, deed: Deed) -> None:
        """An action begins."""
        self.story.deeds.append(deed)


async def _history(cdp: CDPSession) -> dict[str, Any] | None:
    """The history of a tab. While its last document is still arriving it cannot be had."""
    for _ in range(_TRIES):
        try:
            return await cdp.send("Page.getNavigationHistory")
        except ProtocolError:
            await asyncio.sleep(_PAUSE_S)
    return None


def lasting(cookie: dict[str, Any]) -> dict[str, Any]:
    """A cookie as `Storage.setCookies` takes it, that lasts as long as the session or for good.

    When a cookie expires is a matter of the machine's clock, not of the session's.
    """
    kept = {name: cookie[name] for name in _OF_COOKIES if name in cookie}
    return kept if cookie.get("session", True) else {**kept, "expires": _FAR_FUTURE}


def is_redirect(response: Response) -> bool:
    """Whether the browser asks again, somewhere else."""
    return response.status in (301, 302, 303, 307, 308)
