"""Letting time pass in a tab, and knowing when it has come to rest.

Time is Chromium's virtual time. It stands still but for what `Clock.advance` grants, and while
anything is being loaded it stands still as well, however long that takes: so what a page does is a
function of virtual time alone. A granted span passes as fast as the page's own work allows. At the
end of each frame's worth of it, one frame is drawn, at exactly that time: animation frames, CSS
animations and transitions, observers.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

from sandboxgym.sandboxes.browser.cdp import CDPSession
from sandboxgym.sandboxes.browser.errors import TargetGoneError

_EPSILON = 1e-6
_HAIR = 1e-3  # one microsecond: Chromium draws a frame only if it is later than the last


class Clock:
    """Virtual time of one tab.

    Attributes:
        now: Milliseconds since the session began.
        frame_ms: How much time passes from frame to frame.
        running: Whether time passes at this moment.
    """

    def __init__(self, cdp: CDPSession, frame_ms: float) -> None:
        self.cdp = cdp
        self.frame_ms = frame_ms
        self.now = 0.0
        self._base = 0.0
        self._drawn = -math.inf
        self._granted: asyncio.Future[None] | None = None
        cdp.on("Emulation.virtualTimeBudgetExpired", self._expired)
        cdp.on("detached", self._detached)

    @property
    def running(self) -> bool:
        """Whether a span was granted that has not passed yet."""
        return self._granted is not None and not self._granted.done()

    async def start(self, epoch_ms: float, now: float) -> None:
        """Stop time at `epoch_ms + now`."""
        started = await self.cdp.send(
            "Emulation.setVirtualTimePolicy",
            policy="pause",
            initialVirtualTime=(epoch_ms + now) / 1000,
        )
        self.now = now
        self._base = started["virtualTimeTicksBase"] - now

    async def advance(self, until: float, *, draw: bool = True) -> None:
        """Let time pass, with a frame at each multiple of `frame_ms` on the way."""
        while self.now < until - _EPSILON:
            frame = (math.floor(self.now / self.frame_ms + _EPSILON) + 1) * self.frame_ms
            at = min(frame, until)
            await self._grant(at - self.now)
            self.now = at
            if draw and at == frame:
                await self.draw_next()

    async def draw_next(self) -> None:
        """Draw a frame now, later than the last one by a hair at least."""
        self._drawn = max(self.now, self._drawn + _HAIR)
        await self.draw()

    async def draw(self, **options: Any) -> dict[str, Any]:
        """Draw the last frame once more: the page does nothing for it."""
        return await self.cdp.send(
            "HeadlessExperimental.beginFrame",
            frameTimeTicks=self._base + max(self._drawn, 0.0),
            interval=self.frame_ms,
            **options,
        )

    async def _grant(self, ms: float) -> None:
        self._granted = asyncio.get_running_loop().create_future()
        await self.cdp.send(
            "Emulation.setVirtualTimePolicy",
            policy="pauseIfNetworkFetchesPending",
            budget=ms,
            maxVirtualTimeTaskStarvationCount=100_000,
        )
        await self._granted

    def _expired(self, _params: dict[str, Any]) -> None:
        if self._granted is not None and not self._granted.done():
            self._granted.set_result(None)

    def _detached(self, _params: dict[str, Any]) -> None:
        if self._granted is not None and not self._granted.done():
            self._granted.set_exception(TargetGoneError("the page went while time passed"))


class Loading:
    """Which frames of a tab are loading."""

    def __init__(self, cdp: CDPSession) -> None:
        self._frames: set[str] = set()
        for event in ("Page.frameStartedLoading", "Page.frameStartedNavigating"):
            cdp.on(event, lambda params: self._frames.add(params["frameId"]))
        cdp.on("detached", lambda params: self._frames.clear())
        for event in ("Page.frameStoppedLoading", "Page.frameDetached"):
            cdp.on(event, lambda params: self._frames.discard(params["frameId"]))

    def __bool__(self) -> bool:
        return bool(self._frames)
