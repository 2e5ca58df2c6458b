"""Letting time pass in a tab, and knowing when it has come to rest.

Time is Chromium's virtual time. It stands still but for what `Clock.advance` grants, and while
anything is being loaded it stands still as well, however long that takes: so what a page does is a
function of virtual time alone. What is on its way when a frame's worth of it begins, comes before
that (`Loading`, `Session.advance`). A granted span passes as fast as the page's own work allows. At
its end one frame is drawn, at exactly that time: animation frames, CSS animations and transitions,
observers.
"""

from __future__ import annotations

import asyncio
import base64
import math
from collections.abc import Awaitable
from typing import Any

from sandboxgym.sandboxes.browser.cdp import CDPSession
from sandboxgym.sandboxes.browser.errors import ClockLostError, TargetGoneError

EPSILON = 1e-6
MICROSECOND = 1e-3  # Chromium's resolution, in milliseconds
# Chromium rounds what it tells pages of time, and what it moves their animations by, to steps of
# this. What lies between two steps it rounds up or down by a chance of its own.
_STEP = 0.1
# Waited for before each attempt to draw the first frame of a document, which other processes have
# a part in; from the sixth on it is drawn a step later each time.
_ATTEMPTS_S = (0.0, 0.0, 0.002, 0.005, 0.01, 0.02, 0.02, 0.02, 0.05, 0.05)
_CYCLE = 9  # after which frames are on time again


class Clock:
    """The virtual time of one process of the browser.

    A popup that its opener can reach lives in the opener's process and has the opener's clock. All
    other tabs have one each.

    Attributes:
        now: Milliseconds since the session began.
        running: Whether time passes at this moment.
    """

    def __init__(self, epoch_ms: float, now: float) -> None:
        self.now = now
        self.running = False
        self._epoch_ms = epoch_ms
        self._started_at = 0.0  # in Chromium's ticks
        self._base = 0.0
        self._sessions: list[CDPSession] = []
        self._granted: asyncio.Future[None] | None = None

    def add(self, cdp: CDPSession) -> Awaitable[None]:
        """Stop the time of a page; the first one sets the clock, the others have it already."""
        self._sessions.append(cdp)
        cdp.on("Emulation.virtualTimeBudgetExpired", lambda _: self._passed(None))
        cdp.on("detached", lambda _: self._detached(cdp))
        if len(self._sessions) > 1:
            return asyncio.sleep(0)
        return self._started(
            cdp.post(
                "Emulation.setVirtualTimePolicy",
                policy="pause",
                initialVirtualTime=(self._epoch_ms + self.now) / 1000 + 2e-7,  # it is cut off
            )
        )

    async def _started(self, answer: Awaitable[dict[str, Any]]) -> None:
        self._started_at = (await answer)["virtualTimeTicksBase"]
        self._base = self._started_at - self.now

    def ticks(self, time: float) -> float:
        """What Chromium calls a time; it cuts off what is less than a microsecond."""
        return self._base + time + MICROSECOND / 10

    async def run(self, until: float) -> None:
        """Let time pass. It stands still while anything is being loaded.

        Raises:
            TargetGoneError: There is no page left that has this clock.
            ClockLostError: The page left its process, as for a page of Chromium's own.
        """
        self.running = True
        while self.now < until - EPSILON:
            if not self._sessions:
                raise TargetGoneError("the last page of this clock is gone")
            granting = self._sessions[0]
            try:
                await self._grant(granting, until - self.now)
                self.now = until
            except TargetGoneError:
                await self._read()
        self.running = False

    @property
    def told(self) -> float:
        """The present time, as pages are told it."""
        return round(math.floor(self.now / _STEP + EPSILON) * _STEP, 1)

    async def _grant(self, cdp: CDPSession, ms: float) -> None:
        self._granted = asyncio.get_running_loop().create_future()
        self._granted.add_done_callback(lambda done: done.cancelled() or done.exception())
        granted = await cdp.send(
            "Emulation.setVirtualTimePolicy",
            policy="pauseIfNetworkFetchesPending",
            budget=ms + MICROSECOND / 10,  # Chromium cuts off what is less than one
            maxVirtualTimeTaskStarvationCount=100_000,
        )
        if granted["virtualTimeTicksBase"] != self._started_at:
            raise ClockLostError(
                "the page went to another process of the browser, where time is not ours: this "
                "page cannot be shown, go to another one"
            )
        await self._granted

    async def _read(self) -> None:
        """See how far time got with the page that was granted it and is gone."""
        if self._sessions:
            date = await self._sessions[0].send("Runtime.evaluate", expression="Date.now()")
            self.now = max(self.now, date["result"]["value"] - self._epoch_ms)

    def _passed(self, error: TargetGoneError | None) -> None:
        if self._granted is None or self._granted.done():
            return
        if error is None:
            self._granted.set_result(None)
        else:
            self._granted.set_exception(error)

    def _detached(self, cdp: CDPSession) -> None:
        was_granting = cdp is self._sessions[0]
        self._sessions.remove(cdp)
        if was_granting:
            self._passed(TargetGoneError("the page went while time passed"))


class Frames:
    """Draws what a tab shows.

    Attributes:
        waiting: Whether another page of the browser is being drawn at this moment.
    """

    def __init__(self, cdp: CDPSession, clock: Clock, frame_ms: float) -> None:
        self._cdp = cdp
        self._clock = clock
        self._frame_ms = frame_ms
        self._drawn = 0.0
        self._fresh = False
        self.waiting = False
        cdp.on("Page.frameNavigated", self._navigated)

    async def draw_next(self) -> None:
        """Draw a frame now, later than the last one by a step at least."""
        self._drawn = max(self._clock.told, self._drawn + _STEP)
        if self._fresh:
            self._fresh = False
            await self._draw_first()
        else:
            await self._draw()

    async def _draw_first(self) -> None:
        """Draw the first frame of a document, which may not be ready for it at the first attempt.

        The page itself is told of one frame in any case: of the one that it was ready for.
        """
        frame = {"frameId": self._cdp.target_id, "worldName": "sandboxgym"}
        world = await self._cdp.send("Page.createIsolatedWorld", **frame)
        told = self._cdp.post(
            "Runtime.evaluate",
            expression="new Promise(requestAnimationFrame)",
            contextId=world["executionContextId"],
            awaitPromise=True,
        )
        for attempt, pause in enumerate(_ATTEMPTS_S):
            await asyncio.sleep(pause)
            await self._cdp.send("Runtime.evaluate", expression="0")  # it has got round to it
            if told.done():
                return
            self._drawn += _STEP if attempt > 5 else 0
            await self._draw()

    def _navigated(self, params: dict[str, Any]) -> None:
        if "parentId" not in params["frame"]:
            self._fresh = True

    async def picture(self) -> bytes:
        """The last frame once more, as PNG: the page does nothing for it."""
        drawn = await self._draw(screenshot={"format": "png"})
        return base64.b64decode(drawn["screenshotData"])

    async def _draw(self, **options: Any) -> dict[str, Any]:
        """Draw, when no other page of the browser is at it: two at a time would end Chromium."""
        connection = self._cdp.connection
        while connection.drawing is not None and not connection.drawing.done():
            self.waiting = True
            try:
                await asyncio.wait({connection.drawing})
            finally:
                self.waiting = False
        connection.drawing = self._cdp.post(
            "HeadlessExperimental.beginFrame",
            frameTimeTicks=self._clock.ticks(self._drawn),
            interval=self._frame_ms,
            **options,
        )
        return await asyncio.shield(connection.drawing)  # it goes on where we are cancelled


def frame_time(number: int, frame_ms: float) -> float:
    """When a frame is drawn, in milliseconds since the session began.

    A page that does something at one frame often waits for a whole number of milliseconds, and
    another frame would be due at exactly the end of that: whether its timer came before or after
    would be left to chance. So each frame comes a step later than its number says, compared with
    the one before it. Only timers of 180 ms, or some times that, find one again.
    """
    steps = math.ceil(number * frame_ms / _STEP - EPSILON) + number % _CYCLE
    return round(steps * _STEP, 1)


def next_frame(now: float, frame_ms: float) -> float:
    """The first frame after a time."""
    number = math.floor(now / frame_ms + EPSILON)
    at = frame_time(number, frame_ms)
    return at if at > now + EPSILON else frame_time(number + 1, frame_ms)


def nearest_frame(time: float, frame_ms: float) -> float:
    """The frame next to a time."""
    return frame_time(round(time / frame_ms), frame_ms)


class Loading:
    """What a tab waits for that comes from elsewhere, and takes real time.

    Attributes:
        may_end: Whether it is worth waiting for without letting the page's time pass.
        begun: How often something more was to be waited for.
    """

    def __init__(self, cdp: CDPSession) -> None:
        self.may_end = False
        self.begun = 0
        self._frames: set[str] = set()
        self._requests: set[str] = set()
        self._bodies: set[str] = set()  # of answers, that pages may read or not
        self._stored = 0  # answers of databases and caches
        for event in ("Page.frameStartedLoading", "Page.frameStartedNavigating"):
            cdp.on(event, lambda params: self._begins(self._frames, params["frameId"]))
        for event in ("Page.frameStoppedLoading", "Page.frameDetached"):
            cdp.on(event, lambda params: self._ends(params["frameId"]))
        cdp.on("Network.requestWillBeSent", self._asks)
        cdp.on("Network.responseReceived", self._answered)
        for event in ("Network.loadingFinished", "Network.loadingFailed"):
            cdp.on(event, lambda params: self._ends(params["requestId"]))
        cdp.on("Fetch.requestPaused", self._may_ask_for_file)
        for event in ("Page.downloadWillBegin", "Page.frameStartedNavigating"):
            cdp.on(event, lambda params: self._ends(_file_of(params)))
        # A worker's script goes by the worker's own id, and its end is told to the worker only:
        # `worker_runs`.
        cdp.on("Target.attachedToTarget", lambda p: self._begins_worker(p["targetInfo"]))
        cdp.on("detached", lambda _: self._gone())

    def __bool__(self) -> bool:
        """Whether a frame is loading."""
        return bool(self._frames)

    @property
    def parts(self) -> bool:
        """Whether a document is waiting for parts of it, such as pictures."""
        return self.may_end and bool(self._requests or self._bodies)

    def asked_for_stored(self, answers: int) -> None:
        """A page asked for so many answers of databases and caches, or got them if negative."""
        self._stored = max(0, self._stored + answers)
        self._look(more=answers > 0)

    def forget_stored(self) -> None:
        """The document that asked is gone."""
        self._stored = 0
        self._look(more=False)

    def worker_runs(self, target_id: str) -> None:
        """A worker has its script, or is gone."""
        self._ends(target_id)

    def leave_bodies(self) -> None:
        """Pages need not read what they were answered."""
        self._bodies.clear()
        self._look(more=False)

    def give_up(self) -> None:
        """Nothing more will happen without time: a document was never closed, say."""
        self._requests.clear()
        self.may_end = False

    def _asks(self, params: dict[str, Any]) -> None:
        if params["requestId"] != params.get("loaderId"):  # a document's: see its frame
            self._begins(self._requests, params["requestId"])

    def _may_ask_for_file(self, params: dict[str, Any]) -> None:
        """A document to which nothing navigates is a file: a link with `download` was clicked."""
        if params["resourceType"] == "Document" and params.get("frameId") not in self._frames:
            self._begins(self._requests, _file_of(params))

    def _begins_worker(self, target: dict[str, Any]) -> None:
        self._begins(self._requests, target["targetId"])

    def _answered(self, params: dict[str, Any]) -> None:
        if params["requestId"] in self._requests:
            self._requests.discard(params["requestId"])
            self._bodies.add(params["requestId"])

    def _gone(self) -> None:
        self._frames.clear()
        self.give_up()

    def _begins(self, begun: set[str], name: str) -> None:
        begun.add(name)
        self._look(more=True)

    def _ends(self, name: str) -> None:
        for begun in (self._frames, self._requests, self._bodies):
            begun.discard(name)
        self._look(more=False)

    def _look(self, *, more: bool) -> None:
        """What was given up stays so until there is more to wait for."""
        self.begun += more
        waiting = bool(self._frames or self._requests or self._bodies or self._stored)
        self.may_end = waiting and (more or self.may_end)


def _file_of(params: dict[str, Any]) -> str:
    """The name by which a file is waited for that a frame asked for."""
    return f"file of {params.get('frameId')}"
