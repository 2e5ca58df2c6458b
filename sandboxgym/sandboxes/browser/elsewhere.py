"""A site elsewhere, asked over the network by this process. The browser itself has no network."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from sandboxgym.sandboxes.browser.errors import SiteError
from sandboxgym.sandboxes.browser.messages import Request, Response

_NOT_PASSED_ON = frozenset({"host", "content-length", "accept-encoding", "connection"})
_SECONDS = 30.0


class ExternalSite:
    """A site elsewhere. What it keeps cannot be captured, so that its snapshots replay.

    Args:
        url: Where it is; of its origin, all is served.

    Attributes:
        external: True: nobody knows whether it will answer the same again.
    """

    external = True

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._opener = urllib.request.build_opener(_Redirects)

    def respond(self, request: Request) -> Response:
        """Ask it.

        Raises:
            SiteError: It cannot be reached.
        """
        headers = {n: v for n, v in request.headers.items() if n not in _NOT_PASSED_ON}
        asked = urllib.request.Request(
            request.url, request.body or None, headers, method=request.method
        )
        try:
            with self._opener.open(asked, timeout=_SECONDS) as answer:
                return _response(answer)
        except urllib.error.HTTPError as error:  # an answer as any other
            with error:
                return _response(error)
        except (OSError, http.client.HTTPException) as error:
            raise SiteError(f"{request.url} could not be reached: {error}") from error

    def get_state(self) -> Any:
        """None: it is not ours."""
        return None

    def set_state(self, state: Any) -> None:
        """Refuse.

        Raises:
            SiteError: Always.
        """
        raise SiteError(f"the state of {self.origin} is not ours to set")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows none: the browser does."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _response(answer: Any) -> Response:
    headers = tuple((name, value) for name, value in answer.headers.items())
    return Response(int(answer.status), headers, answer.read())
