"""`Session`: one episode's browser context, with its site and its tabs.

    session = await Session.start(wsgi(make_app)(), Options(seed=7))
    await session.open("/")                     # in the active tab; follows redirects, settles
    tab = session.active
    tab.url, await tab.title()
    await tab.cdp.send("DOM.getDocument")       # any command of the DevTools protocol
    await tab.evaluate("document.forms.length") # in an isolated world that the page cannot see
    png = await session.screenshot()            # as last drawn; changes nothing

    async def click() -> None:
        await tab.mouse("mouseMoved", x, y)
        await tab.mouse("mousePressed", x, y, button="left", clickCount=1)
        await tab.mouse("mouseReleased", x, y, button="left", clickCount=1)

    await session.perform("click('12')", click) # does it, lets `action_ms` pass, waits for loads

    session.recorder.story                      # what its present state came from
    tab.dialogs, tab.refused                    # what the last action brought
    await session.close()

How a session is made again from its story says `retelling.py`.

What goes wrong is raised by `perform` (and `open`) after the session was made usable again: a tab
that crashed, hangs or went beyond a limit is replaced by an empty one in its place, and keeps
nothing; cookies, storage and the other tabs stay.

All of this is asynchronous and belongs into the browser's thread: `loop.run(session.open("/"))`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from sandboxgym.sandboxes.browser import chromium
from sandboxgym.sandboxes.browser.cdp import CDPSession
from sandboxgym.sandboxes.browser.errors import (
    BrowserError,
    BrowserLostError,
    ClockLostError,
    NavigationRefusedError,
    PageHungError,
    PageLimitError,
    ProtocolError,
    SiteError,
    TargetGoneError,
)
from sandboxgym.sandboxes.browser.hands import Hands
from sandboxgym.sandboxes.browser.hosting import Host
from sandboxgym.sandboxes.browser.intercept import Traffic
from sandboxgym.sandboxes.browser.options import Limits, Options
from sandboxgym.sandboxes.browser.recorder import Deed, Recorder, Start
from sandboxgym.sandboxes.browser.settle import (
    EPSILON,
    MICROSECOND,
    Clock,
    nearest_frame,
    next_frame,
)
from sandboxgym.sandboxes.browser.sites import Site
from sandboxgym.sandboxes.browser.tab import Dialog, Tab
from sandboxgym.sandboxes.browser.vault import Vault

__all__ = ["Dialog", "Limits", "Options", "Session", "Tab"]

Result = TypeVar("Result")

_ROUNDS_OF_REST = 2  # in which a page reads what has arrived
# So few that the microseconds between them stay below what pages are told; together a second.
_BODY_PAUSES_S = (0.001,) * 8 + (0.005,) * 8
_LOAD_PAUSES_S = (0.07,) * 14
_PARTS_PAUSES_S = (0.001,) * 4 + (0.005,) * 4 + (0.02,) * 4 + (0.07,) * 4
_LAID_OUT = "document.documentElement?.getBoundingClientRect().top"
# On a busy machine all takes longer: pauses are as long as so many of Chromium's answers, up to
_ANSWERS, _LONGEST_PAUSE_S = 8, 0.3


class Session:
    """One episode's browser context, its site and its tabs; see this module's text.

    Attributes:
        site: Answers the pages' requests.
        options: As given.
        now: Milliseconds of virtual time since the session began.
        tabs: In the order in which they were opened.
        active: The tab that actions go to.
        refused: What was refused outside of any tab in this action, each with the reason.
        recorder: Keeps what its present state came from.
        hands: Where the mouse is.
    """

    def __init__(self, site: Site, options: Options, now: float) -> None:
        self.site = site
        self.options = options
        self.now = now
        self.tabs: list[Tab] = []
        self.active: Tab
        self.refused: list[str] = []
        self.recorder = Recorder(self, options.epoch_ms)
        self.hands = Hands()
        self._vault: Vault | None = None
        self._vault_page: asyncio.Future[CDPSession] | None = None  # while it is on its way
        self._host = Host(site)
        self._turn = asyncio.Lock()
        self._context = ""
        self._browser: chromium.Browser
        self._expected: dict[str, asyncio.Future[Tab]] = {}
        self._arriving: set[asyncio.Task[None]] = set()
        self._failed: dict[Tab, BrowserError] = {}
        self._failing: asyncio.Future[None] | None = None

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
        blank = await self._browser.pool.take()
        self._context = blank.context_id
        self._browser.attach(self._context, self._attached)
        self._attached(blank.cdp, blank.target)
        self.active = await self._expect(blank.cdp.target_id)
        self.tabs.append(self.active)
        return self

    async def new_tab(self) -> Tab:
        """Open an empty tab, which becomes the active one."""
        tab = await self._make_tab()
        self.tabs.append(tab)
        self.active = tab
        return tab

    async def close_tab(self, tab: Tab) -> None:
        """Close a tab. The last one is followed by an empty one."""
        await self._end(tab)
        self.tabs.remove(tab)
        await self._tidy()

    async def focus(self, tab: Tab) -> None:
        """Make a tab the active one."""
        self.active = tab

    async def open(
        self, url: str, *, referrer: str = "", settle_until: float | None = None
    ) -> None:
        """Go to a URL, absolute or relative to the site's origin, in the active tab.

        Args:
            url: Where to.
            referrer: Where from, as the document is told.
            settle_until: Until when time passes; None for `action_ms` and until it has loaded.

        Raises:
            NavigationRefusedError: The URL is not the site's, or what it brings is no document.
            BrowserError: As `perform`.
        """
        await self.perform(
            None, lambda: self.navigate(url, referrer=referrer), settle_until=settle_until
        )

    async def navigate(self, url: str, *, referrer: str = "") -> None:
        """Send the active tab to a URL: a part of an action, for `perform`.

        Raises:
            NavigationRefusedError: The URL is not the site's, or what it brings is no document.
        """
        origin = self.site.origin
        target = urljoin(origin, url)
        if target != "about:blank" and _origin(target) != _origin(origin):
            raise NavigationRefusedError(f"{target} was refused: there is only {origin} to go to")
        went = await self.active.cdp.send("Page.navigate", url=target, referrer=referrer)
        if went.get("errorText"):
            raise NavigationRefusedError(f"{target} brought no document: {went['errorText']}")

    async def perform(
        self,
        deed: Deed | None,
        doing: Callable[[], Awaitable[None]],
        *,
        settle_until: float | None = None,
    ) -> None:
        """Do something with the active tab, then let all tabs come to rest.

        Args:
            deed: What is done, for the story; None where it begins one, or is not to be told.
            doing: Does it. What it raises is raised here, when all tabs are at rest.
            settle_until: Until when time passes; None for `action_ms` and until all has loaded.

        Raises:
            PageHungError: A page did not come to rest; the tab was replaced by an empty one.
            PageCrashedError: The process of a page crashed; likewise.
            PageLimitError: A page went beyond a limit.
            SiteError: The site raised, or did not answer.
            BrowserLostError: The browser is gone, and the session with it.
        """
        await self._recover()
        if deed is not None:
            self.recorder.did(deed)
        self.refused.clear()
        for tab in self.tabs:
            tab.begin_action()
        working = asyncio.ensure_future(self._do(doing, settle_until))
        self._failing = asyncio.get_running_loop().create_future()
        try:
            await self._in_time({working, self._failing})
        finally:
            failing, self._failing = self._failing, None
            if not working.done():
                working.cancel()
                await asyncio.wait({working})
        if not failing.done() and working.cancelled():
            self._note_hung()
        await self._recover()
        what_doing_raised = working.exception()
        for tab in self.tabs:
            if tab.traffic.fault is not None:
                raise tab.traffic.fault from what_doing_raised
        working.result()

    async def wait(self, ms: float) -> None:
        """Let virtual time pass, until the frame that is next to the end of it."""
        await self.advance(nearest_frame(self.now + ms, self.options.frame_ms))

    async def advance(self, until: float) -> None:
        """Let virtual time pass in all tabs, frame by frame; only the active one is drawn."""
        await self._load()
        while self.now < until - EPSILON:
            frame = next_frame(self.now, self.options.frame_ms)
            self.now = min(frame, until)
            for clock in dict.fromkeys(tab.clock for tab in self.tabs):
                await self._run(clock, self.now)
            await self._all_arrived()
            for tab in self.tabs:
                if not tab.gone:
                    await tab.workers.step()
                    await tab.traverse()
            await self._load()
            if self.now == frame:
                with contextlib.suppress(TargetGoneError):
                    await self.active.frames.draw_next()

    async def load_parts(self) -> None:
        """Let the active document get what it shows by now, in almost no time of the page's.

        In the midst of an action: what lies under the mouse may depend on a picture that the page
        shows there as soon as the mouse is over it.
        """
        tab = self.active
        if not await _finished(tab, asyncio.ensure_future(_lay_out(tab))):
            return
        for pause in _PARTS_PAUSES_S:
            if tab.gone or not tab.loading.parts:
                return
            creeping = asyncio.ensure_future(self._creep())
            if not await _finished(tab, creeping):
                tab.traffic.let_document_come()
                await creeping
                return
            await asyncio.sleep(pause)

    async def screenshot(self) -> bytes:
        """The active tab's viewport as PNG, as it was last drawn. Nothing in the page can notice.

        Raises:
            PageHungError: It cannot be drawn; the tab was replaced by an empty one.
        """
        drawing = asyncio.ensure_future(self.active.screenshot())
        await self._in_time({drawing})
        if not drawing.done():
            drawing.cancel()
            seconds = self.options.wall_s
            self._failed[self.active] = PageHungError(
                f"{self.active.url} could not be drawn within {seconds} s"
            )
            await self._recover()
        return await drawing

    async def read(self, reading: Callable[[Tab], Awaitable[Result]]) -> list[Result]:
        """What is found out about each tab at rest.

        Raises:
            PageHungError: It took longer than an action may; the tab was replaced by an empty one.
            PageLimitError: As `reading` raised it; likewise.
            PageCrashedError: The process of a page crashed; likewise.
        """
        found = {tab: asyncio.ensure_future(reading(tab)) for tab in self.tabs}
        try:
            await asyncio.wait(found.values(), timeout=self.options.wall_s)
        finally:
            for future in found.values():
                future.cancel()  # if it is not done
        for tab, future in found.items():
            if not future.done():
                self._failed[tab] = PageHungError(
                    f"{tab.url} could not be read within {self.options.wall_s} s"
                )
            elif isinstance(error := future.exception(), PageLimitError):
                self._failed[tab] = error
        await self._recover()
        return [future.result() for future in found.values()]

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

    async def databases(self) -> list[dict[str, Any]]:
        """All of IndexedDB, as `indexeddb.js` writes it.

        Raises:
            UncapturedPageError: It cannot be read.
        """
        if not self.recorder.uses_databases:
            return []
        return await (await self._opened_vault()).read()

    async def set_databases(self, databases: list[dict[str, Any]]) -> None:
        """Put back what `databases` returned."""
        self.recorder.uses_databases = True
        await (await self._opened_vault()).write(databases)

    async def _opened_vault(self) -> Vault:
        if self._vault is None:
            self._vault_page = asyncio.get_running_loop().create_future()
            await self._browser.new_page(self._context)
            self._vault = Vault(await self._vault_page)
            self._vault_page = None
            await self._vault.open(self.site.origin)
        return self._vault

    def blank_start(self) -> Start | None:
        """Time and mouse of this moment; None where a story cannot begin now.

        It can where one tab is all there is, which nothing else can reach, and nothing is held.
        """
        tab = self.active
        if self.tabs != [tab] or tab.opener is not None or self._arriving or not self.hands.empty:
            return None
        mouse = [self.hands.x, self.hands.y]
        return Start(time=tab.clock.told, mouse=mouse, pointer=list(tab.pointer))

    async def close(self) -> None:
        """End all its pages and forget what they stored."""
        for tab in self.tabs:
            tab.traffic.close()
        self._host.close()
        if not self._browser.lost:
            await self._browser.dispose_context(self._context)

    # What happens while an action is performed.

    async def _in_time(self, either: set[asyncio.Future[Any]]) -> None:
        """Wait as long as an action may take. Waiting for another session's page is not counted."""
        while True:
            done, _ = await asyncio.wait(
                either, timeout=self.options.wall_s, return_when=asyncio.FIRST_COMPLETED
            )
            if done or not any(tab.frames.waiting for tab in self.tabs):
                return

    async def _load(self) -> None:
        """Let come what is on its way, in almost no time of the pages'.

        When something has loaded, Chromium puts the clock forward to 10 ms after it was asked for,
        if time may go on for so long. Whether a parser, a script or a timer gets round to its work
        before or after that is left to chance. So time is granted by the microsecond until all is
        there; what is missing from the 10 ms then passes at once, before anything else does.
        """
        if not self._loading:
            return
        for pauses in (_BODY_PAUSES_S, _LOAD_PAUSES_S):
            for pause in pauses:
                asked = time.perf_counter()
                await self._creep()
                if self._loading:  # what we wait for is in other processes
                    slow = min(_ANSWERS * (time.perf_counter() - asked), _LONGEST_PAUSE_S)
                    await asyncio.sleep(max(pause, slow))
                    continue
                begun = self._begun
                for _ in range(_ROUNDS_OF_REST):
                    await self._creep()
                if not self._loading and self._begun == begun:
                    return
            for tab in self.tabs:
                tab.loading.leave_bodies()
        for tab in self.tabs:
            tab.loading.give_up()

    @property
    def _loading(self) -> bool:
        return any(tab.loading.may_end for tab in self.tabs if not tab.gone)

    @property
    def _begun(self) -> int:
        return sum(tab.loading.begun for tab in self.tabs)

    async def _creep(self) -> None:
        for clock in dict.fromkeys(tab.clock for tab in self.tabs):
            await self._run(clock, clock.now + MICROSECOND)
        await self._all_arrived()

    async def _run(self, clock: Clock, until: float) -> None:
        try:
            await clock.run(until)
        except TargetGoneError:
            pass  # its last page was closed: see `_tidy`
        except ClockLostError as error:
            for tab in self.tabs:
                if tab.clock is clock:
                    self._fail(tab, error)

    async def _do(self, doing: Callable[[], Awaitable[None]], until: float | None) -> None:
        tab = self.active
        try:
            await doing()
        except TargetGoneError:
            await self._settle(until)
            if not tab.gone:  # it may well close itself at the first half of a click
                raise
            return
        except Exception:
            await self._settle(until)
            raise
        with contextlib.suppress(TargetGoneError, ProtocolError):
            # And so that a form is sent, by a task of its own, before time passes.
            await self.active.close_picker()
        await self._settle(until)

    async def _settle(self, until: float | None) -> None:
        await self._all_arrived()
        if until is not None:
            await self.advance(until)
        else:
            latest = self.now + self.options.load_ms
            await self.wait(self.options.action_ms)
            while any(tab.loading for tab in self.tabs) and self.now < latest:
                await self.advance(next_frame(self.now, self.options.frame_ms))
        await self._tidy()
        with contextlib.suppress(TargetGoneError, ProtocolError):
            await self.active.close_picker()  # that a timer opened

    async def _tidy(self) -> None:
        """Take away tabs that are gone, and see to it that there is an active one."""
        self.tabs = [tab for tab in self.tabs if not tab.gone]
        if not self.tabs:
            await self.new_tab()
        elif self.active not in self.tabs:
            opener = self.active.opener
            self.active = opener if opener in self.tabs and opener else self.tabs[-1]

    # Tabs that come.

    async def _make_tab(self) -> Tab:
        return await self._expect(await self._browser.new_page(self._context))

    def _expect(self, target_id: str) -> asyncio.Future[Tab]:
        if target_id not in self._expected:
            self._expected[target_id] = asyncio.get_running_loop().create_future()
        return self._expected[target_id]

    def _attached(self, cdp: CDPSession, target: dict[str, Any]) -> None:
        if target["type"] != "page":
            self.refused.append(f"a {target['type']} ({target['url']}) was refused")
            self._browser.cdp.post("Target.closeTarget", targetId=cdp.target_id)
            return
        opener_id = target.get("openerId")
        if self._vault_page is not None and not opener_id:
            self._vault_page.set_result(cdp)
            return
        opener = next((tab for tab in self.tabs if tab.frame_id == opener_id), None)
        limit = self.options.limits.tabs
        if opener is not None and len(self.tabs) + len(self._arriving) >= limit:
            opener.traffic.refuse(f"a popup was refused: more than {limit} tabs were open")
            cdp.post("Fetch.enable")  # stops its first request for good
            cdp.post("Runtime.runIfWaitingForDebugger")  # while it waits it cannot be closed
            self._browser.cdp.post("Target.closeTarget", targetId=cdp.target_id)
            return
        task = asyncio.ensure_future(self._arrive(cdp, target, opener))
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    async def _arrive(self, cdp: CDPSession, target: dict[str, Any], opener: Tab | None) -> None:
        traffic = Traffic(self._host, self._turn, self.options.limits, self.recorder)
        shares = opener is not None and target.get("canAccessOpener", False)
        clock = opener.clock if shares and opener else Clock(self.options.epoch_ms, self.now)
        tab = Tab(cdp, self.options, traffic, clock, opener, self._fail)
        traffic.endless = lambda error: self._fail(tab, error)
        try:
            await tab.start(self._browser.user_agent)
        except BrowserError as error:
            if opener is None:
                self._expect(cdp.target_id).set_exception(error)
            elif not isinstance(error, TargetGoneError):  # not closed as soon as it was opened
                opener.traffic.fault = error
            return
        if opener is not None:
            self.tabs.append(tab)
            self.active = tab
        self._expect(cdp.target_id).set_result(tab)

    async def _all_arrived(self) -> None:
        while self._arriving:
            await asyncio.wait(set(self._arriving))

    # Tabs that fail.

    def _fail(self, tab: Tab, error: BrowserError) -> None:
        """A tab cannot go on; the action in progress is broken off."""
        if tab.ended:
            return  # what it was at comes to its end after it
        self._failed.setdefault(tab, error)
        if self._failing is not None and not self._failing.done():
            self._failing.set_result(None)

    def _note_hung(self) -> None:
        seconds = self.options.wall_s
        asked = self._host.asked
        for tab in self.tabs:
            if not (tab is self.active or tab.clock.running or tab.loading):
                continue
            if asked is not None:
                self._failed[tab] = SiteError(
                    f"the site did not answer {asked.method} {asked.url} within {seconds} s"
                )
            else:
                self._failed[tab] = PageHungError(
                    f"{tab.url} did not come to rest within {seconds} s: a script runs for ever, "
                    "or longer than Options.wall_s"
                )

    async def _recover(self) -> None:
        """Put an empty tab in the place of each that failed, then raise why."""
        if self._browser.lost:
            raise BrowserLostError("the browser is gone: reset starts another")
        failed, self._failed = self._failed, {}
        for tab in failed:
            tab.ended = True
        for tab in failed:
            await self._end(tab)
            new = await self._make_tab()
            if tab in self.tabs:
                self.tabs[self.tabs.index(tab)] = new
            else:
                self.tabs.append(new)
            if tab is self.active:
                self.active = new
        for error in failed.values():
            raise error

    async def _end(self, tab: Tab) -> None:
        tab.ended = True
        tab.traffic.close()
        if tab.gone:
            return
        tab.cdp.post("Runtime.terminateExecution")
        await self._browser.cdp.send("Target.closeTarget", targetId=tab.frame_id)


async def _lay_out(tab: Tab) -> None:
    with contextlib.suppress(TargetGoneError, ProtocolError):
        await tab.evaluate(_LAID_OUT)


async def _finished(tab: Tab, doing: asyncio.Future[None]) -> bool:
    """Wait for something; False where it may have to wait for a document, and so must not we."""
    waiting = asyncio.ensure_future(tab.traffic.document_waits.wait())
    either: set[asyncio.Future[Any]] = {doing, waiting}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return doing.done()


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
