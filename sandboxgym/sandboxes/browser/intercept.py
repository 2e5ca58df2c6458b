"""Every request of a session's pages and workers: served from the site, or refused by name."""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urldefrag, urlsplit

from sandboxgym.sandboxes.browser.cdp import CDPSession
from sandboxgym.sandboxes.browser.errors import PageLimitError, ProtocolError, TargetGoneError
from sandboxgym.sandboxes.browser.recording import Exchange, Recording, Replay
from sandboxgym.sandboxes.browser.sites import Request, Response, Site

REDIRECTS = frozenset({301, 302, 303, 307, 308})
NO_DOCUMENT = frozenset({204, 205})


@dataclass(frozen=True)
class Limits:
    """What one action may cause before its page is ended.

    Attributes:
        requests: How many requests.
        redirects: How many redirects one after the other.
        body_bytes: How large one response may be.
    """

    requests: int = 1000
    redirects: int = 20
    body_bytes: int = 64 * 2**20


class Traffic:
    """The requests of one tab, with its frames and workers.

    Attributes:
        recording: Of the current document.
        replay: Serves in place of the site while it is not None.
        refused: What was refused since the list was last emptied, each with its reason.
    """

    def __init__(
        self,
        site: Site,
        caller: concurrent.futures.Executor,
        limits: Limits,
        cookies: Callable[[], Any],
        now: Callable[[], float],
    ) -> None:
        self.site = site
        self.limits = limits
        self.recording = Recording()
        self.replay: Replay | None = None
        self.refused: list[str] = []
        self.failure: Exception | None = None
        self.requests = 0
        self._caller = caller
        self._cookies = cookies
        self._now = now
        self._turn = asyncio.Lock()
        self._coming: Recording | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def watch(self, cdp: CDPSession, main_frame: str) -> None:
        """Intercept what a target asks for; `main_frame` is "" for a worker."""

        def paused(params: dict[str, Any]) -> None:
            task = asyncio.ensure_future(self._answer(cdp, main_frame, params))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        cdp.on("Fetch.requestPaused", paused)
        await cdp.send("Fetch.enable", patterns=[{"urlPattern": "*"}])

    async def _answer(self, cdp: CDPSession, main_frame: str, params: dict[str, Any]) -> None:
        request_id = params["requestId"]
        try:
            async with self._turn:
                request = _request(params)
                refusal = self._refusal(request)
                if refusal is not None:
                    self.refused.append(refusal)
                    await cdp.send("Fetch.failRequest", requestId=request_id, errorReason="Aborted")
                    return
                navigates = (
                    params["resourceType"] == "Document" and params.get("frameId") == main_frame
                )
                response = await self._serve(request, navigates=navigates)
                if response is None:
                    await cdp.send("Fetch.failRequest", requestId=request_id, errorReason="Aborted")
                    return
                cdp.post(
                    "Fetch.fulfillRequest",
                    requestId=request_id,
                    responseCode=response.status,
                    responseHeaders=[{"name": n, "value": v} for n, v in response.headers],
                    body=base64.b64encode(response.body).decode(),
                )
        except (TargetGoneError, ProtocolError):
            pass  # whoever asked is gone: a page that was left, or a request that was cancelled
        except Exception as error:  # noqa: BLE001 - the action that caused the request raises it
            self.failure = self.failure or error
            cdp.post("Fetch.failRequest", requestId=request_id, errorReason="Aborted")

    def _refusal(self, request: Request) -> str | None:
        self.requests += 1
        if self.requests > self.limits.requests:
            raise PageLimitError(
                f"the page made more than {self.limits.requests} requests in one action; the last "
                f"was for {request.url}"
            )
        site, url = urlsplit(self.site.origin), urlsplit(request.url)
        if (url.scheme, url.netloc) != (site.scheme, site.netloc):
            return f"{request.url} was refused: there is no network, only {self.site.origin}"
        return None

    async def _serve(self, request: Request, *, navigates: bool) -> Response | None:
        cookies = await self._cookies() if navigates and self._coming is None else []
        if self.replay is not None:
            response = self.replay.respond(request)
        else:
            response = await asyncio.get_running_loop().run_in_executor(
                self._caller, self.site.respond, request
            )
        if response is None:
            return None
        exchange = Exchange(request, response)
        if not navigates:
            self.recording.resources.append(exchange)
            return response
        if self._coming is None:
            self._coming = Recording(cookies=cookies, time=self._now())
        self._coming.navigation.append(exchange)
        if response.status not in REDIRECTS:
            if response.status not in NO_DOCUMENT:
                self.recording = self._coming
            self._coming = None
        elif len(self._coming.navigation) > self.limits.redirects:
            self._coming = None
            raise PageLimitError(f"more than {self.limits.redirects} redirects to {request.url}")
        return response

    def close(self) -> None:
        """Stop answering."""
        for task in list(self._tasks):
            task.cancel()


def _request(params: dict[str, Any]) -> Request:
    asked = params["request"]
    entries = asked.get("postDataEntries", ())
    body = b"".join(base64.b64decode(entry.get("bytes", "")) for entry in entries)
    headers = {name.lower(): value for name, value in asked["headers"].items()}
    return Request(asked["method"], urldefrag(asked["url"]).url, headers, body)
