"""Blank contexts of the browser, made ahead of demand.

A context is a browser of its own: cookies, storage and pages apart from all others. One is used for
one episode and thrown away after it, never cleaned and used again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandboxgym.sandboxes.browser.cdp import CDPSession
from sandboxgym.sandboxes.browser.errors import BrowserError

if TYPE_CHECKING:
    from sandboxgym.sandboxes.browser.chromium import Browser

READY = 2
"""How many are kept."""
_QUIET_S = 0.1  # since the browser was told anything: then one is made
_PATIENCE_S = 0.5  # for which it is put off at most


@dataclass(frozen=True)
class Blank:
    """A context with one page, which waits to be set up and told to run.

    Attributes:
        context_id: Of the context.
        cdp: Of its page.
        target: What Chromium says of the page.
    """

    context_id: str
    cdp: CDPSession
    target: dict[str, Any]


class Pool:
    """The blank contexts of one browser.

    Args:
        browser: The browser.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._ready: deque[Blank] = deque()
        self._making: asyncio.Task[None] | None = None

    async def take(self) -> Blank:
        """A blank context, which is the caller's; another is made when there is time."""
        blank = self._ready.popleft() if self._ready else await self._make()
        if self._making is None or self._making.done():
            self._making = asyncio.ensure_future(self._fill())
        return blank

    async def _fill(self) -> None:
        try:
            while len(self._ready) < READY:
                await self.quiet()
                self._ready.append(await self._make())
        except BrowserError:
            pass  # whoever needs one next is told

    async def quiet(self) -> None:
        """Wait for a moment at which nobody waits for the browser, but not for ever."""
        now = asyncio.get_running_loop().time
        begun = now()  # by whoever took the last one, and has more to ask for
        while now() - begun < _PATIENCE_S:
            left = max(begun, self._browser.connection.last_used) + _QUIET_S - now()
            if left <= 0:
                return
            await asyncio.sleep(left)

    async def _make(self) -> Blank:
        pages: list[tuple[CDPSession, dict[str, Any]]] = []
        context_id = await self._browser.new_context(lambda *page: pages.append(page))
        await self._browser.new_page(context_id)  # we are told of the page before it returns
        cdp, target = pages[0]
        return Blank(context_id, cdp, target)
