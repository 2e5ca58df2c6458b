"""`Session`: one episode's browser context, with its site and its tabs.

    session = await Session.start(wsgi(make_app)(), Options())
    await session.open("/")                     # in the active tab; follows redirects, settles
    tab = session.active
    tab.url, await tab.title()
    await tab.cdp.send("DOM.getDocument")       # any command of the DevTools protocol
    await tab.evaluate("document.forms.length") # in an isolated world that the page cannot see
    png = await tab.screenshot()

    async def click() -> None:
        await tab.mouse("mouseMoved", x, y)
        await tab.mouse("mousePressed", x, y, button="left", clickCount=1)
        await tab.mouse("mouseReleased", x, y, button="left", clickCount=1)

    await session.perform("click('12')", click) # does it, lets `action_ms` pass, waits for loads

    recording = tab.recording                   # of the tab's current document
    await session.close()

To show a recorded document again, exactly: start a session *at the recorded time* and serve the
recorded responses.

    twin = await Session.start(site, options, now=recording.time)
    await twin.set_cookies(recording.cookies)
    twin.active.replay = Replay(recording)
    await twin.open(recording.navigation[0].request.url)
    for at, action in recording.actions:
        await twin.advance(at)
        await twin.perform(action, …)
    twin.active.replay = None                   # from here on the site answers

All of this is asynchronous and belongs into the browser's thread: `loop.run(session.open("/"))`.
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from sandboxgym.sandboxes.browser import chromium
from sandboxgym.sandboxes.browser.cdp import CDPSession
from sandboxgym.sandboxes.browser.errors import (
    PageCrashedError,
    PageHungError,
    ProtocolError,
)
from sandboxgym.sandboxes.browser.intercept import Limits, Traffic
from sandboxgym.sandboxes.browser.recording import Recording, Replay
from sandboxgym.sandboxes.browser.settle import Clock, Loading
from sandboxgym.sandboxes.browser.sites import Site

_WORLD = "sandboxgym"


@dataclass(frozen=True)
class Options:
    """How a session's pages see the world, and what they may do.

    Attributes:
        seed: Of `Math.random` and `crypto`.
        width: Of the viewport, in pixels.
        height: Of the viewport, in pixels.
        epoch_ms: What `Date.now()` says when the session begins.
        locale: Language of pages.
        timezone: Time zone of pages.
        frame_ms: Virtual time from one drawn frame to the next.
        action_ms: Virtual time that passes with each action, at least.
        load_ms: Virtual time that a page may take to load, at most.
        wall_s: Seconds of real time that an action may take before its page counts as hung.
        limits: What one action may cause.
    """

    seed: int = 0
    width: int = 1280
    height: int = 720
    epoch_ms: float = 1_735_732_800_000.0  # 2025-01-01T12:00:00Z
    locale: str = "en-US"
    timezone: str = "UTC"
    frame_ms: float = 20.0
    action_ms: float = 100.0
    load_ms: float = 10_000.0
    wall_s: float = 10.0
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Dialog:
    """A dialog that a page showed, and how it was answered."""

    kind: str
    message: str
    accepted: bool


class Tab:
    """A page with all its frames.

    Attributes:
        cdp: The DevTools session of the page; commands take its frames by id.
        frame_id: Of the main frame.
        url: Of the current document, kept by Chromium's events.
        opener: The tab that opened it, or None.
        dialogs: What it showed since the last action began.
        crashed: Whether its process is gone.
    """

    def __init__(self, session: Session, cdp: CDPSession, opener: Tab | None) -> None:
        self.session = session
        self.cdp = cdp
        self.opener = opener
        self.frame_id = cdp.target_id
        self.url = "about:blank"
        self.dialogs: list[Dialog] = []
        self.crashed = False
        self.clock = Clock(cdp, session.options.frame_ms)
        self.loading = Loading(cdp)
        self.traffic = Traffic(
            session.site, session.caller, session.options.limits, session.cookies, self.now
        )
        cdp.on("Page.frameNavigated", self._navigated)
        cdp.on("Page.navigatedWithinDocument", self._moved)
        cdp.on("Page.javascriptDialogOpening", self._asked)
        cdp.on("Inspector.targetCrashed", self._crashed)

    def now(self) -> float:
        """Milliseconds of virtual time since the session began."""
        return self.clock.now

    @property
    def recording(self) -> Recording:
        """Of the current document."""
        return self.traffic.recording

    @property
    def replay(self) -> Replay | None:
        """What serves this tab in place of the site, if anything."""
        return self.traffic.replay

    @replay.setter
    def replay(self, replay: Replay | None) -> None:
        self.traffic.replay = replay

    async def set_up(self) -> None:
        """Make the page ready before anything in it runs, then let it run."""
        options = self.session.options
        cdp = self.cdp
        commands = [
            cdp.post("Page.enable"),
            cdp.post(
                "Emulation.setDeviceMetricsOverride",
                width=options.width,
                height=options.height,
                deviceScaleFactor=1,
                mobile=False,
            ),
            cdp.post("Emulation.setTimezoneOverride", timezoneId=options.timezone),
            cdp.post("Emulation.setLocaleOverride", locale=options.locale),
            cdp.post(
                "Emulation.setEmulatedMedia",
                features=[{"name": "prefers-reduced-motion", "value": "reduce"}],
            ),
            cdp.post("Emulation.setFocusEmulationEnabled", enabled=True),
        ]
        await asyncio.gather(*commands)
        await self.traffic.watch(cdp, self.frame_id)
        await self.clock.start(options.epoch_ms, self.session.now)
        await cdp.send("Runtime.runIfWaitingForDebugger")

    async def title(self) -> str:
        """The document's title."""
        return str(await self.evaluate("document.title"))

    async def evaluate(self, expression: str, *, frame_id: str | None = None) -> Any:
        """Evaluate JavaScript in an isolated world: it sees the DOM, and no variable of the page.

        Args:
            expression: Its value must be JSON data; a promise is awaited.
            frame_id: Which frame; None for the main one.
        """
        result = await self.cdp.send(
            "Runtime.evaluate",
            expression=expression,
            contextId=await self.isolated_world(frame_id),
            returnByValue=True,
            awaitPromise=True,
        )
        thrown = result.get("exceptionDetails")
        if thrown is not None:
            what = thrown.get("exception", {}).get("description") or thrown["text"]
            raise ProtocolError("Runtime.evaluate", what)
        return result["result"].get("value")

    async def isolated_world(self, frame_id: str | None = None) -> int:
        """The execution context, in one frame, that the page cannot see."""
        world = await self.cdp.send(
            "Page.createIsolatedWorld", frameId=frame_id or self.frame_id, worldName=_WORLD
        )
        context_id: int = world["executionContextId"]
        return context_id

    async def mouse(self, kind: str, x: float, y: float, **params: Any) -> None:
        """`Input.dispatchMouseEvent`; moves and wheels take effect at the frame drawn here."""
        done = self.cdp.post("Input.dispatchMouseEvent", type=kind, x=x, y=y, **params)
        if kind in ("mouseMoved", "mouseWheel"):
            await self.clock.draw()
        await done

    async def key(self, kind: str, **params: Any) -> None:
        """`Input.dispatchKeyEvent`."""
        await self.cdp.send("Input.dispatchKeyEvent", type=kind, **params)

    async def screenshot(self) -> bytes:
        """The viewport as PNG, at this very moment."""
        drawn = await self.clock.draw(screenshot={"format": "png"})
        return base64.b64decode(drawn["screenshotData"])

    def _navigated(self, params: dict[str, Any]) -> None:
        frame = params["frame"]
        if frame["id"] == self.frame_id:
            self.url = frame["url"] + frame.get("urlFragment", "")

    def _moved(self, params: dict[str, Any]) -> None:
        if params["frameId"] == self.frame_id:
            self.url = params["url"]

    def _asked(self, params: dict[str, Any]) -> None:
        accept = params["type"] in ("alert", "beforeunload")
        self.dialogs.append(Dialog(params["type"], params["message"], accept))
        self.cdp.post("Page.handleJavaScriptDialog", accept=accept)

    def _crashed(self, _params: dict[str, Any]) -> None:
        self.crashed = True


class Session:
    """One episode's browser context, its site and its tabs; see this module's text.

    Attributes:
        site: Answers the pages' requests.
        options: As given.
        now: Milliseconds of virtual time since the session began.
        tabs: In the order in which they were opened.
        active: The tab that actions go to.
    """

    def __init__(self, site: Site, options: Options, now: float) -> None:
        self.site = site
        self.options = options
        self.now = now
        self.tabs: list[Tab] = []
        self.active: Tab
        self.caller = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="site")
        self._context = ""
        self._browser: chromium.Browser
        self._coming: dict[str, asyncio.Future[Tab]] = {}

    @classmethod
    async def start(
        cls, site: Site, options: Options | None = None, *, now: float = 0.0
    ) -> Session:
        """Make a session with one empty tab.

        Args:
            site: Of this session alone.
            options: How pages see the world.
            now: Milliseconds of virtual time that have passed already.
        """
        self = cls(site, options or Options(), now)
        self._browser = await chromium.shared()
        self._context = await self._browser.new_context(self._attached)
        self.active = await self.new_tab()
        return self

    async def new_tab(self) -> Tab:
        """Open an empty tab, which becomes the active one."""
        created = await self._browser.cdp.send(
            "Target.createTarget",
            url="about:blank",
            browserContextId=self._context,
            width=self.options.width,
            height=self.options.height,
            enableBeginFrameControl=True,
        )
        tab = await self._tab_of(created["targetId"])
        self.active = tab
        return tab

    async def open(self, url: str) -> None:
        """Go to a URL, absolute or relative to the site's origin, in the active tab.

        Raises:
            PageHungError: It did not come to rest.
        """
        target = urljoin(self.site.origin, url)
        tab = self.active

        async def navigate() -> None:
            await tab.cdp.send("Page.navigate", url=target)

        await self.perform(None, navigate)

    async def perform(self, action: str | None, doing: Callable[[], Awaitable[None]]) -> None:
        """Do something with the active tab, then let all tabs come to rest.

        Args:
            action: Its text, for the recording; None where it is not to be recorded.
            doing: Does it.

        Raises:
            PageHungError: A page did not come to rest.
            PageCrashedError: The process of a page crashed.
        """
        tab = self.active
        if action is not None:
            tab.recording.actions.append((self.now, action))
        for each in self.tabs:
            each.traffic.requests = 0
            each.traffic.failure = None
            each.dialogs.clear()
        try:
            await asyncio.wait_for(self._do(doing), self.options.wall_s)
        except asyncio.TimeoutError:
            raise PageHungError(
                f"{tab.url} did not come to rest within {self.options.wall_s} s"
            ) from None
        for each in self.tabs:
            if each.traffic.failure is not None:
                raise each.traffic.failure
        if tab.crashed:
            raise PageCrashedError(f"the process of {tab.url} crashed")

    async def advance(self, until: float) -> None:
        """Let virtual time pass in all tabs."""
        for tab in list(self.tabs):
            await tab.clock.advance(until, draw=tab is self.active)
        self.now = max(self.now, until)

    async def cookies(self) -> list[dict[str, Any]]:
        """All cookies of the session."""
        stored = await self._browser.cdp.send("Storage.getCookies", browserContextId=self._context)
        cookies: list[dict[str, Any]] = stored["cookies"]
        return cookies

    async def set_cookies(self, cookies: list[dict[str, Any]]) -> None:
        """Add cookies, as `cookies` returns them."""
        await self._browser.cdp.send(
            "Storage.setCookies", browserContextId=self._context, cookies=cookies
        )

    async def close(self) -> None:
        """End all its pages and forget what they stored."""
        for tab in self.tabs:
            tab.traffic.close()
        if not self._browser.lost:
            await self._browser.dispose_context(self._context)
        self.caller.shutdown(wait=False)

    async def _do(self, doing: Callable[[], Awaitable[None]]) -> None:
        await doing()
        latest = self.now + self.options.load_ms
        await self.advance(self.now + self.options.action_ms)
        while any(tab.loading for tab in self.tabs) and self.now < latest:
            await self.advance(self.now + self.options.frame_ms)

    def _attached(self, cdp: CDPSession, target: dict[str, Any]) -> None:
        if target["type"] != "page":
            return
        opener = next(
            (tab for tab in self.tabs if tab.cdp.target_id == target.get("openerId")), None
        )
        tab = Tab(self, cdp, opener)
        asyncio.ensure_future(self._add(tab))

    async def _add(self, tab: Tab) -> None:
        await tab.set_up()
        self.tabs.append(tab)
        if tab.opener is not None:
            self.active = tab
        self._coming_tab(tab.cdp.target_id).set_result(tab)

    def _coming_tab(self, target_id: str) -> asyncio.Future[Tab]:
        if target_id not in self._coming:
            self._coming[target_id] = asyncio.get_running_loop().create_future()
        return self._coming[target_id]

    async def _tab_of(self, target_id: str) -> Tab:
        return await self._coming_tab(target_id)


def is_of(url: str, origin: str) -> bool:
    """Whether a URL belongs to an origin."""
    this, that = urlsplit(url), urlsplit(origin)
    return (this.scheme, this.netloc) == (that.scheme, that.netloc)
