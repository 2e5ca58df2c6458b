"""WSGI and ASGI applications as sites; neither needs a server.

Where an application object has methods `get_state` and `set_state`, they are the site's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from io import BytesIO, StringIO
from typing import Any
from urllib.parse import unquote, urlsplit

from sandboxgym.sandboxes.browser.errors import SiteError
from sandboxgym.sandboxes.browser.messages import ORIGIN, Request, Response

WSGIApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Message = MutableMapping[str, Any]
ASGIApp = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


class _Application:
    """What sites that are applications have in common."""

    def __init__(self, app: Any, origin: str) -> None:
        self.app = app
        self.origin = origin

    def get_state(self) -> Any:
        """The application's `get_state()`, or None where it has none."""
        hook = getattr(self.app, "get_state", None)
        return None if hook is None else hook()

    def set_state(self, state: Any) -> None:
        """The application's `set_state(state)`."""
        hook = getattr(self.app, "set_state", None)
        if hook is None:
            raise SiteError(f"{type(self.app).__name__} has no set_state(state): add one")
        hook(state)


class WSGISite(_Application):
    """A WSGI application as a site.

    Args:
        app: The application; this site's alone.
        origin: Where it believes to be.
    """

    def __init__(self, app: WSGIApp, origin: str = ORIGIN) -> None:
        super().__init__(app, origin)

    def respond(self, request: Request) -> Response:
        """Call the application."""
        started: list[tuple[str, list[tuple[str, str]]]] = []
        written: list[bytes] = []

        def start_response(status: str, headers: list[tuple[str, str]], _error: Any = None) -> Any:
            started.append((status, headers))
            return written.append

        content = self.app(_environ(request), start_response)
        try:
            written.extend(content)
        finally:
            close = getattr(content, "close", None)
            if close is not None:
                close()
        status, headers = started[-1]
        return Response(int(status.split()[0]), tuple(headers), b"".join(written))


class ASGISite(_Application):
    """An ASGI application as a site, in an event loop of its own.

    The loop runs while a request is answered, and stands still in between: so does whatever the
    application does in the background. Its lifespan begins before the first request.

    Args:
        app: The application; this site's alone.
        origin: Where it believes to be.
    """

    def __init__(self, app: ASGIApp, origin: str = ORIGIN) -> None:
        super().__init__(app, origin)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._living: asyncio.Task[None] | None = None
        self._asked: asyncio.Queue[Message] = asyncio.Queue()
        self._shared: dict[str, Any] = {}

    def respond(self, request: Request) -> Response:
        """Call the application."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._loop.run_until_complete(self._begin_life())
        return self._loop.run_until_complete(self._call(request))

    def close(self) -> None:
        """Shut the application down, unless it is at an answer that never comes."""
        if self._loop is None or self._loop.is_running():
            return
        if self._living is not None:
            self._asked.put_nowait({"type": "lifespan.shutdown"})
            self._loop.run_until_complete(self._living)
        self._loop.close()
        self._loop = None

    async def _begin_life(self) -> None:
        """Start the application up, if it wants to know; those that do not raise."""
        self._asked = asyncio.Queue()
        self._asked.put_nowait({"type": "lifespan.startup"})
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        failures: list[str] = []

        async def send(message: Message) -> None:
            if message["type"].endswith(".failed"):
                failures.append(message.get("message", "it does not say why"))
            if not answered.done():
                answered.set_result(None)

        async def live() -> None:
            scope = {"type": "lifespan", "asgi": _ASGI, "state": self._shared}
            with contextlib.suppress(Exception):  # as servers do: it has no lifespan then
                await self.app(scope, self._asked.get, send)

        self._living = asyncio.ensure_future(live())
        started: set[asyncio.Future[None]] = {self._living, answered}
        await asyncio.wait(started, return_when=asyncio.FIRST_COMPLETED)
        if failures:
            raise SiteError(f"the application did not start: {failures[0]}")

    async def _call(self, request: Request) -> Response:
        answer: list[Message] = []
        asked: list[Message] = [{"type": "http.request", "body": request.body, "more_body": False}]

        async def receive() -> Message:
            return asked.pop() if asked else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            answer.append(message)

        await self.app(self._scope(request), receive, send)
        start = next(message for message in answer if message["type"] == "http.response.start")
        headers = ((n.decode("latin-1"), v.decode("latin-1")) for n, v in start.get("headers", ()))
        body = b"".join(bytes(message.get("body", b"")) for message in answer)
        return Response(start["status"], tuple(headers), body)

    def _scope(self, request: Request) -> Message:
        url = urlsplit(request.url)
        path = url.path or "/"
        headers = [(b"host", url.netloc.encode()), *_encoded(request.headers)]
        if request.body:
            headers.append((b"content-length", str(len(request.body)).encode()))
        return {
            "type": "http",
            "asgi": _ASGI,
            "http_version": "1.1",
            "method": request.method,
            "scheme": url.scheme,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": url.query.encode(),
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": (url.hostname or "", url.port or _port(url.scheme)),
            "state": self._shared.copy(),
        }


_ASGI = {"version": "3.0", "spec_version": "2.3"}


class _Discarded(StringIO):
    """Where an application writes its complaints; nobody reads them."""

    def write(self, text: str) -> int:
        return len(text)


def _environ(request: Request) -> dict[str, Any]:
    url = urlsplit(request.url)
    headers = request.headers
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(url.path or "/", "latin-1"),
        "QUERY_STRING": url.query,
        "CONTENT_TYPE": headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(request.body)),
        "SERVER_NAME": url.hostname or "",
        "SERVER_PORT": str(url.port or _port(url.scheme)),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": url.netloc,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": url.scheme,
        "wsgi.input": BytesIO(request.body),
        "wsgi.errors": _Discarded(),
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in headers.items():
        key = name.upper().replace("-", "_")
        if key not in ("CONTENT_TYPE", "CONTENT_LENGTH", "HOST"):
            environ[f"HTTP_{key}"] = value
    return environ


def _encoded(headers: dict[str, str]) -> Iterable[tuple[bytes, bytes]]:
    for name, value in headers.items():
        if name not in ("host", "content-length"):
            yield name.encode("latin-1"), value.encode("latin-1")


def _port(scheme: str) -> int:
    return 443 if scheme == "https" else 80
