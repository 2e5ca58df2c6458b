"""Sites that live inside the process: what answers a page's requests.

    site = wsgi(make_app)                       # make_app() -> a WSGI application
    site = asgi(make_app)
    site = folder("dist")                       # static files

Each of these returns a *factory*: every environment makes an instance of its own, so that nothing
one episode does can be seen in another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

ORIGIN = "https://site.test"  # a secure context, as most sites are


@dataclass(frozen=True)
class Request:
    """What a page asks for.

    Attributes:
        method: GET, POST, …
        url: The whole URL, without a fragment.
        headers: By lower-case name; Cookie included.
        body: What was posted.
    """

    method: str
    url: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    """What a site answers.

    Attributes:
        status: The HTTP status.
        headers: Pairs of name and value, in order; Set-Cookie may be there several times.
        body: The content.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


class Site(Protocol):
    """One instance of a site, for one environment.

    Attributes:
        origin: Scheme and host, such as "http://site.test"; only its URLs are served.
    """

    origin: str

    def respond(self, request: Request) -> Response:
        """Answer one request. Requests of an environment come one after the other."""
        ...

    def get_state(self) -> Any:
        """Everything on the server's side that decides its answers, as plain data.

        None where the site does not know: its snapshots then replay.
        """
        ...

    def set_state(self, state: Any) -> None:
        """Continue from what `get_state` returned."""
        ...


SiteFactory = Callable[[], Site]
WSGIApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class _Discarded(StringIO):
    """Where an application writes its complaints; nobody reads them."""

    def write(self, text: str) -> int:
        return len(text)


class WSGISite:
    """A WSGI application as a site.

    Where the application object has methods `get_state` and `set_state`, they are the site's.

    Args:
        app: The application; this site's alone.
        origin: Where it believes to be.
    """

    def __init__(self, app: WSGIApp, origin: str = ORIGIN) -> None:
        self.app = app
        self.origin = origin

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

    def get_state(self) -> Any:
        """The application's `get_state()`, or None where it has none."""
        hook = getattr(self.app, "get_state", None)
        return None if hook is None else hook()

    def set_state(self, state: Any) -> None:
        """The application's `set_state(state)`."""
        self.app.set_state(state)  # type: ignore[attr-defined]


def wsgi(make_app: Callable[[], WSGIApp], origin: str = ORIGIN) -> SiteFactory:
    """A factory of sites that serve what `make_app()` returns."""
    return lambda: WSGISite(make_app(), origin)


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
        "SERVER_PORT": str(url.port or (443 if url.scheme == "https" else 80)),
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
