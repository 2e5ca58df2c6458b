"""A site at work: in a thread of its own, one request after the other."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from sandboxgym.sandboxes.browser.errors import SiteError
from sandboxgym.sandboxes.browser.sites import Request, Response, Site

Result = TypeVar("Result")
_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class Host:
    """Runs one site.

    A site is code of the user's. It may take its time without holding up the browser's thread, and
    one that never answers blocks its own thread only, which is a daemon.

    Attributes:
        site: The site. Whoever calls its methods directly does so while no page is running.
        asked: The request that it is at, or None.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.asked: Request | None = None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="sandboxgym-site", daemon=True)
        self._thread.start()

    async def respond(self, request: Request) -> Response:
        """What the site answers.

        Raises:
            SiteError: It raised instead.
        """
        self.asked = request
        try:
            return await self._call(lambda: self.site.respond(request))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            raise SiteError(
                f"the site raised {type(error).__name__} at {request.method} {request.url}: {error}"
            ) from error
        finally:
            self.asked = None

    def close(self) -> None:
        """Let the thread end when it has done what it is at."""
        self._jobs.put(None)

    async def _call(self, function: Callable[[], Result]) -> Result:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._jobs.put((loop, future, function))
        return await future

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, future, function = job
            try:
                result = function()
            except Exception as error:  # noqa: BLE001 - whoever waits for the future raises it
                loop.call_soon_threadsafe(_finish, future, None, error)
            else:
                loop.call_soon_threadsafe(_finish, future, result, None)


def _finish(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
