"""Reading IndexedDB of a session, and putting it back.

A page whose time stands still cannot be asked: what it waits for comes with time. So an empty page
of the site's origin, in the same context and with a time of its own, does it. No page can see it.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from sandboxgym.sandboxes.browser.cdp import CDPSession
from sandboxgym.sandboxes.browser.errors import ProtocolError, UncapturedPageError
from sandboxgym.sandboxes.browser.scripts import script

_PATIENCE_S = 5.0


class Vault:
    """The empty page.

    Args:
        cdp: Of a page that has not run yet.
    """

    def __init__(self, cdp: CDPSession) -> None:
        self._cdp = cdp

    async def open(self, origin: str) -> None:
        """Go to the site's origin; the site is not asked."""
        cdp = self._cdp
        loaded: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def answer(params: dict[str, Any]) -> None:
            cdp.post("Fetch.fulfillRequest", requestId=params["requestId"], responseCode=200)

        def load(_params: dict[str, Any]) -> None:
            if not loaded.done():
                loaded.set_result(None)

        cdp.on("Fetch.requestPaused", answer)
        answers = [
            cdp.post("Page.enable"),
            cdp.post("Fetch.enable", patterns=[{"urlPattern": "*"}]),
            cdp.post("Runtime.runIfWaitingForDebugger"),
        ]
        await asyncio.gather(*answers)
        cdp.on("Page.loadEventFired", load)
        await cdp.send("Page.navigate", url=origin)
        await asyncio.wait_for(loaded, _PATIENCE_S)

    async def read(self) -> list[dict[str, Any]]:
        """All databases, as `indexeddb.js` writes them.

        Raises:
            UncapturedPageError: One holds something that is no plain data, or cannot be read.
        """
        databases: list[dict[str, Any]] = await self._call("dump")
        return databases

    async def write(self, databases: list[dict[str, Any]]) -> None:
        """Put databases in the place of those that are there."""
        await self._call("load", databases)

    async def _call(self, action: str, databases: list[dict[str, Any]] | None = None) -> Any:
        argument = json.dumps({"action": action, "databases": databases or []})
        try:
            called = await asyncio.wait_for(
                self._cdp.send(
                    "Runtime.evaluate",
                    expression=f"({script('indexeddb.js')})({argument})",
                    returnByValue=True,
                    awaitPromise=True,
                ),
                _PATIENCE_S,
            )
        except (asyncio.TimeoutError, ProtocolError) as error:
            raise UncapturedPageError(f"IndexedDB could not be reached ({error!r})") from error
        thrown = called.get("exceptionDetails")
        if thrown is not None:
            what = thrown.get("exception", {}).get("description") or thrown["text"]
            raise UncapturedPageError(f"IndexedDB could not be captured: {what}")
        return called["result"].get("value")
