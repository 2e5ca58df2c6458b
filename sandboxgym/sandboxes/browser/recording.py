"""What made the document of a tab what it is, so that it can be made again without the site.

A tab has one `Recording` at a time, of its current document: the responses that brought the
document (redirects included), all that were served to it since, the cookies and the time at its
load, and the actions since. `Recording.to_data()` is plain data.

`Replay` serves the responses of a recording in place of the site, each once, in the order in which
they were given.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from sandboxgym.sandboxes.browser.sites import Request, Response


@dataclass(frozen=True)
class Exchange:
    """A request, and what was answered."""

    request: Request
    response: Response

    @property
    def key(self) -> tuple[str, str, bytes]:
        """What tells requests apart: cookies and other headers do not."""
        return (self.request.method, self.request.url, self.request.body)


@dataclass
class Recording:
    """One document of one tab.

    Attributes:
        navigation: The request that began it, and every redirect after that; empty for a document
            that came without one, such as about:blank.
        resources: What was served to the document since, in order.
        cookies: Those of the context before the navigation, as `Storage.setCookies` takes them.
        time: Milliseconds of virtual time at its load, since the session began.
        actions: Time and text of each action since its load; `Session.perform` adds them.
    """

    navigation: list[Exchange] = field(default_factory=list)
    resources: list[Exchange] = field(default_factory=list)
    cookies: list[dict[str, Any]] = field(default_factory=list)
    time: float = 0.0
    actions: list[tuple[float, str]] = field(default_factory=list)

    @property
    def exchanges(self) -> list[Exchange]:
        """All of them, in order."""
        return [*self.navigation, *self.resources]

    def to_data(self) -> dict[str, Any]:
        """The recording as plain data."""
        return {
            "navigation": [_exchange_to_data(exchange) for exchange in self.navigation],
            "resources": [_exchange_to_data(exchange) for exchange in self.resources],
            "cookies": [dict(cookie) for cookie in self.cookies],
            "time": self.time,
            "actions": [[at, action] for at, action in self.actions],
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Recording:
        """A recording from what `to_data` returned."""
        return cls(
            navigation=[_exchange_from_data(each) for each in data["navigation"]],
            resources=[_exchange_from_data(each) for each in data["resources"]],
            cookies=[dict(cookie) for cookie in data["cookies"]],
            time=data["time"],
            actions=[(at, action) for at, action in data["actions"]],
        )


class Replay:
    """Serves what a recording holds.

    Attributes:
        missed: Requests that the recording does not have. They are failed; a document that makes
            one is not the recorded one.
    """

    def __init__(self, recording: Recording) -> None:
        self.missed: list[Request] = []
        self._left: dict[tuple[str, str, bytes], deque[Response]] = defaultdict(deque)
        for exchange in recording.exchanges:
            self._left[exchange.key].append(exchange.response)

    def respond(self, request: Request) -> Response | None:
        """The recorded response, or None where there is none left."""
        left = self._left.get((request.method, request.url, request.body))
        if left:
            return left.popleft()
        self.missed.append(request)
        return None


def _exchange_to_data(exchange: Exchange) -> list[Any]:
    request, response = exchange.request, exchange.response
    return [
        request.method,
        request.url,
        dict(request.headers),
        request.body,
        response.status,
        [list(pair) for pair in response.headers],
        response.body,
    ]


def _exchange_from_data(data: list[Any]) -> Exchange:
    method, url, headers, body, status, answered, content = data
    pairs = tuple((name, value) for name, value in answered)
    return Exchange(Request(method, url, dict(headers), body), Response(status, pairs, content))
