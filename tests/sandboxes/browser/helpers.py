"""A small site, and how the tests of the browser engine drive a session."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sandboxgym.sandboxes.browser import loop
from sandboxgym.sandboxes.browser.options import Options
from sandboxgym.sandboxes.browser.session import Session
from sandboxgym.sandboxes.browser.sites import Request, Response

ORIGIN = "https://site.test"
Page = str | Response | Callable[[Request], Response]


class PageSite:
    """Serves pages by path, and remembers what it was asked for."""

    origin = ORIGIN

    def __init__(self, pages: dict[str, Page]) -> None:
        self.pages = pages
        self.asked: list[Request] = []

    def respond(self, request: Request) -> Response:
        self.asked.append(request)
        path = request.url.removeprefix(ORIGIN).partition("?")[0]
        page = self.pages.get(path)
        if page is None:
            return Response(404, (("Content-Type", "text/html"),), b"<title>none</title>")
        if isinstance(page, str):
            return html(page)
        return page if isinstance(page, Response) else page(request)

    def get_state(self) -> Any:
        return None

    def set_state(self, state: Any) -> None:
        raise NotImplementedError

    @property
    def paths(self) -> list[str]:
        return [request.url.removeprefix(ORIGIN) for request in self.asked]


def html(text: str, *headers: tuple[str, str], status: int = 200) -> Response:
    return Response(status, (("Content-Type", "text/html"), *headers), text.encode())


def script(text: str) -> Response:
    return Response(200, (("Content-Type", "text/javascript"),), text.encode())


def redirect(to: str) -> Response:
    return Response(302, (("Location", to),))


def hang(_request: Request) -> Response:
    time.sleep(3)
    return html("too late")


class Driver:
    """A session seen from a test: everything waits for its result."""

    def __init__(self, pages: dict[str, Page], options: Options | None = None) -> None:
        self.site = PageSite(pages)
        self.session: Session = loop.run(Session.start(self.site, options))

    def open(self, url: str = "/") -> None:
        loop.run(self.session.open(url), 60)

    def run(self, script: str) -> None:
        """Run a script of the page's as an action: its user did something."""
        cdp = self.session.active.cdp

        async def doing() -> None:
            await cdp.send("Runtime.evaluate", expression=script, userGesture=True)

        loop.run(self.session.perform(None, doing), 60)

    def wait(self, ms: float) -> None:
        loop.run(self.session.wait(ms), 60)

    def value(self, expression: str) -> Any:
        """Of an expression in the page's own world."""
        result = loop.run(
            self.session.active.cdp.send(
                "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=False
            ),
            60,
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def click(self, x: float, y: float) -> None:
        tab = self.session.active

        async def doing() -> None:
            await tab.mouse("mouseMoved", x, y)
            await tab.mouse("mousePressed", x, y, button="left", clickCount=1)
            await tab.mouse("mouseReleased", x, y, button="left", clickCount=1)

        loop.run(self.session.perform(None, doing), 60)

    @property
    def url(self) -> str:
        return self.session.active.url

    @property
    def title(self) -> str:
        return str(loop.run(self.session.active.title(), 60))

    @property
    def refused(self) -> list[str]:
        return self.session.active.refused

    def screenshot(self) -> bytes:
        return loop.run(self.session.screenshot(), 60)

    def close(self) -> None:
        loop.run(self.session.close(), 60)
