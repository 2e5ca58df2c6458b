"""Answers of a site that were kept, and given again in the order in which they were given."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sandboxgym.sandboxes.browser.sites import Request, Response
from sandboxgym.sandboxes.browser.vetting import typed

_Data = tuple[str, str, bytes, int, list[tuple[str, str]], bytes]


@dataclass(frozen=True)
class Exchange:
    """A request, and what was answered."""

    request: Request
    response: Response

    @property
    def key(self) -> tuple[str, str, bytes]:
        """What tells requests apart: cookies and other headers do not."""
        return (self.request.method, self.request.url, self.request.body)

    def to_data(self) -> list[Any]:
        """As plain data, without the request's headers."""
        headers = [list(pair) for pair in self.response.headers]
        return [*self.key, self.response.status, headers, self.response.body]

    @classmethod
    def from_data(cls, data: list[Any]) -> Exchange:
        """From what `to_data` returned."""
        method, url, body, status, headers, content = typed(data, _Data)
        return cls(Request(method, url, {}, body), Response(status, tuple(headers), content))


class Replay:
    """Answers in place of a site, each answer once.

    Attributes:
        missed: Requests that were never answered before. They are refused; a page that makes one is
            not the page that was recorded.
    """

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self.missed: list[Request] = []
        self._left: dict[tuple[str, str, bytes], deque[Response]] = defaultdict(deque)
        for exchange in exchanges:
            self._left[exchange.key].append(exchange.response)

    def respond(self, request: Request) -> Response | None:
        """The recorded answer, or None where there is none left."""
        left = self._left.get((request.method, request.url, request.body))
        if left:
            return left.popleft()
        self.missed.append(request)
        return None
