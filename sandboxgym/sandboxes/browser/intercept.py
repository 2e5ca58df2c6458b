"""Every request of a tab's pages and workers: served from the site, or refused by name.

A page never reaches a network. Chromium's `Fetch` domain stops each request and waits for what we
say; whatever is not the site's is failed as if it had been cancelled, so that a page that tried to
leave stays where it is. (An error page would be another document, in another process, whose clock
we would have lost.)
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import urldefrag, urlsplit

from sandboxgym.sandboxes.browser.cdp import CDPSession
from sandboxgym.sandboxes.browser.errors import (
    BrowserError,
    PageLimitError,
    ProtocolError,
    SiteError,
    TargetGoneError,
)
from sandboxgym.sandboxes.browser.hosting import Host
from sandboxgym.sandboxes.browser.options import Limits
from sandboxgym.sandboxes.browser.recorder import Recorder, is_redirect
from sandboxgym.sandboxes.browser.sites import Request, Response

BOUNDARY = "----SandboxGymFormBoundary"
_BOUNDARY = re.compile(r"multipart/form-data; boundary=(----WebKitFormBoundary\w{16})")
NO_DOCUMENT = frozenset({204, 205})
_FAULT = Response(500, (("Content-Type", "text/plain"),), b"Internal Server Error")
_SHOWN = ("text/", "image/", "audio/", "video/", "multipart/")
_SHOWN_TOO = frozenset({"application/json", "application/xml", "application/javascript", ""})
_BLOB = re.compile(r"(blob:\w+://[^/\s]+/)[0-9a-f-]{36}")  # which Chromium draws
_GONE = "Invalid InterceptionId"
# They would move a document to another process of the browser, away from where its clock is ours.
# What they keep apart is other origins, of which there are none.
_MOVING = frozenset({"cross-origin-opener-policy", "document-isolation-policy"})
_LEFT_OUT = frozenset({"content-length", "transfer-encoding", "connection", "keep-alive"})


class Traffic:
    """The requests of one tab, with its frames and workers.

    Args:
        host: Runs the site.
        turn: Held by whoever asks the site; shared by the tabs of a session.
        limits: What one action may cause.
        recorder: Of the session: is told of everything that is served, and may serve it itself.

    Attributes:
        refused: What was refused in this action, each with the reason.
        fault: The first thing that went wrong in this action without ending the page.
        downloads: How often a link with `download` was followed. When Chromium tells of one depends
            on how busy the machine is, and the page never learns of it: so it is counted here, and
            is no part of what an action was refused.
        endless: Called with an error when the page asks and asks.
        document_waits: Whether one was asked for since `no_document` began. Chromium then keeps
            most commands to the page until it has come.
    """

    def __init__(
        self,
        host: Host,
        turn: asyncio.Lock,
        limits: Limits,
        recorder: Recorder,
    ) -> None:
        self.host = host
        self.limits = limits
        self.recorder = recorder
        self.refused: list[str] = []
        self.downloads = 0
        self.fault: BrowserError | None = None
        self.endless: Callable[[PageLimitError], None] | None = None
        self._turn = turn
        self._free = asyncio.Event()  # documents are answered
        self._free.set()
        self.document_waits = asyncio.Event()
        self._asked = 0
        self._navigation = ""  # Chromium's type of the one that is under way
        self._redirects = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def watch(self, cdp: CDPSession, main_frame: str) -> Awaitable[Any]:
        """Intercept what a target asks for; `main_frame` is "" for a worker."""

        def paused(params: dict[str, Any]) -> None:
            task = asyncio.ensure_future(self._answer(cdp, main_frame, params))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        cdp.on("Fetch.requestPaused", paused)
        cdp.on("Page.downloadWillBegin", self._downloads)

        def navigating(params: dict[str, Any]) -> None:
            if params["frameId"] == main_frame:
                self._navigation, self._redirects = params["navigationType"], 0

        cdp.on("Page.frameStartedNavigating", navigating)
        return cdp.post("Fetch.enable", patterns=[{"urlPattern": "*"}])

    def begin_action(self) -> None:
        """Forget what the last action brought."""
        self.refused.clear()
        self.fault = None
        self._asked = 0

    @contextlib.contextmanager
    def no_document(self) -> Iterator[None]:
        """Bring the tab no document meanwhile.

        Between the two halves of a double click there is time enough for one to come or not.
        """
        self._free.clear()
        self.document_waits.clear()
        try:
            yield
        finally:
            self._free.set()

    def let_document_come(self) -> None:
        """Wait no longer for the end of `no_document`."""
        self._free.set()

    def refuse(self, what: str) -> None:
        """Note something that was refused; the same thing once."""
        what = _BLOB.sub(r"\1", what)
        if what not in self.refused and len(self.refused) < self.limits.requests:
            self.refused.append(what)

    async def idle(self) -> None:
        """Wait until every request was answered."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def close(self) -> None:
        """Stop answering."""
        for task in list(self._tasks):
            task.cancel()

    async def _answer(self, cdp: CDPSession, main_frame: str, params: dict[str, Any]) -> None:
        request = _request(params)
        navigates = params["resourceType"] == "Document" and params.get("frameId") == main_frame
        try:
            if navigates and not self._free.is_set():
                self.document_waits.set()
                await self._free.wait()
                if not await _wanted(cdp, params["requestId"]):
                    return
            async with self._turn:
                if navigates and self._redirects == 0:
                    await self.recorder.asked(cdp, request, self._navigation)
                response = await self._response(request, navigates=navigates)
            if response is None:
                await cdp.send(
                    "Fetch.failRequest", requestId=params["requestId"], errorReason="Aborted"
                )
            else:
                await cdp.send(
                    "Fetch.fulfillRequest",
                    requestId=params["requestId"],
                    responseCode=response.status,
                    responseHeaders=[
                        {"name": name, "value": value}
                        for name, value in response.headers
                        if name.lower() not in _MOVING
                    ],
                    body=base64.b64encode(response.body).decode(),
                )
        except TargetGoneError:
            pass  # whoever asked is gone: a page that was left
        except ProtocolError as error:
            if _GONE not in error.reason:  # a request that was cancelled
                self._go_wrong(SiteError(f"{request.url} cannot be answered so: {error.reason}"))
                cdp.post("Fetch.failRequest", requestId=params["requestId"], errorReason="Aborted")

    async def _response(self, request: Request, *, navigates: bool) -> Response | None:
        """The answer to a request; None refuses it."""
        self._asked += 1
        if self._asked > self.limits.requests:
            error = PageLimitError(
                f"the page made more than {self.limits.requests} requests in one action, the last "
                f"for {request.url}"
            )
            self._go_wrong(error)
            if self.endless is not None:
                self.endless(error)
            return None
        site, url = urlsplit(self.host.site.origin), urlsplit(request.url)
        if (url.scheme, url.netloc) != (site.scheme, site.netloc):
            self.refuse(
                f"{request.url} was refused: there is no network, only {self.host.site.origin}"
            )
            return None
        response = await self._ask(request)
        if response is None:
            return None
        if navigates:
            return self._navigate(request, response)
        self.recorder.served(request, response, navigates=False, brings_document=False)
        return response

    async def _ask(self, request: Request) -> Response | None:
        """The recorded answer, or the site's, if it is not too large."""
        if self.recorder.replay is not None:
            return self.recorder.replay.respond(request)
        try:
            response = await self.host.respond(request)
        except SiteError as error:
            self._go_wrong(error)
            response = _FAULT
        if len(response.body) > self.limits.body_bytes:
            self._go_wrong(
                PageLimitError(
                    f"{request.url} has {len(response.body)} bytes, over the limit of "
                    f"{self.limits.body_bytes}: raise Limits.body_bytes"
                )
            )
            return None
        headers = tuple((n, v) for n, v in response.headers if n.lower() not in _LEFT_OUT)
        body = response.body
        if response.status >= 400 and not body:  # Chromium would show an error page of its own
            body = f"HTTP ERROR {response.status}".encode()
        return Response(response.status, headers, body)

    def _navigate(self, request: Request, response: Response) -> Response | None:
        """Tell the recorder what the tab's main frame is sent; some of it is refused."""
        self._redirects = self._redirects + 1 if is_redirect(response) else 0
        if self._redirects > self.limits.redirects:
            self._go_wrong(
                PageLimitError(
                    f"there were more than {self.limits.redirects} redirects, the last to "
                    f"{request.url}"
                )
            )
            return None
        if _is_file(response):
            self.refuse(f"the download of {request.url} was refused")
            self.recorder.served(request, response, navigates=True, brings_document=False)
            return None
        brings_document = not is_redirect(response) and response.status not in NO_DOCUMENT
        if brings_document and _wants_isolation(response):
            self.refuse(f"{request.url} was refused to be cross-origin isolated")
        self.recorder.served(request, response, navigates=True, brings_document=brings_document)
        return response

    def _downloads(self, params: dict[str, Any]) -> None:
        """What seemed to be a document is a file, and the tab keeps the document that it had."""
        self.downloads += 1
        self.recorder.brought_no_document(params["url"])

    def _go_wrong(self, error: BrowserError) -> None:
        self.fault = self.fault or error


def _request(params: dict[str, Any]) -> Request:
    asked = params["request"]
    entries = asked.get("postDataEntries", ())
    body = b"".join(base64.b64decode(entry.get("bytes", "")) for entry in entries)
    headers = {name.lower(): value for name, value in asked["headers"].items()}
    drawn = _BOUNDARY.fullmatch(headers.get("content-type", ""))
    if drawn is not None:  # Chromium draws the boundary of the parts, from no seed of ours
        headers["content-type"] = headers["content-type"].replace(drawn[1], BOUNDARY)
        body = body.replace(drawn[1].encode(), BOUNDARY.encode())
    return Request(asked["method"], urldefrag(asked["url"]).url, headers, body)


async def _wanted(cdp: CDPSession, request_id: str) -> bool:
    """Whether a request still waits for its answer; the page may have asked for another since."""
    try:
        await cdp.send("Fetch.getResponseBody", requestId=request_id)
    except ProtocolError as error:  # in any case: there is no response yet
        return _GONE not in error.reason
    return True


def _wants_isolation(response: Response) -> bool:
    """Whether the document would be `crossOriginIsolated`, with shared memory and finer clocks."""
    headers = _headers(response)
    return "document-isolation-policy" in headers or (
        headers.get("cross-origin-opener-policy", "").startswith("same-origin")
        and "cross-origin-embedder-policy" in headers
    )


def _headers(response: Response) -> dict[str, str]:
    return {name.lower(): value.strip().lower() for name, value in response.headers}


def _is_file(response: Response) -> bool:
    """Whether the browser would save it, not show it."""
    headers = _headers(response)
    if headers.get("content-disposition", "").startswith("attachment"):
        return True
    kind = headers.get("content-type", "text/").partition(";")[0].strip()
    return not (kind.startswith(_SHOWN) or kind.endswith(("+xml", "+json")) or kind in _SHOWN_TOO)
