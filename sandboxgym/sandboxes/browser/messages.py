"""What a page asks and a site answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

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
        origin: Scheme and host, such as "https://site.test"; only its URLs are served.
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
