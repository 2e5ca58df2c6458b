"""The pages of MiniWoB++ as a site inside the process."""

from __future__ import annotations

import functools
import json
from typing import Any
from urllib.parse import unquote, urlsplit

from sandboxgym.sandboxes.browser.miniwob.tasks import Task, folder
from sandboxgym.sandboxes.browser.sites import ORIGIN, Request, Response

# Appended to the task's page. It does what MiniWoB++'s own environment does with a page that has
# loaded, and leaves no trace. The episode begins after the page's own `load` handlers, and always
# at the same virtual time: when a page has loaded, Chromium's clock may be at 10 or at 20 ms.
_START = """<script>
addEventListener("load", () => setTimeout(() => {
  core.hideDisplay();
  Math.seedrandom(%s);
  core.setDataMode(%s);
  core.startEpisodeReal();
}, Math.max(0, 70 - performance.now())));
document.currentScript.remove();
</script>"""

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "gif": "image/gif",
    "png": "image/png",
    "woff": "font/woff",
}
_NOT_FOUND = Response(404, (("Content-Type", "text/plain"),), b"Not Found")
_STAY = Response(204, ())


class MiniWoBSite:
    """Serves the page of one task once, so that an episode is not started again by a reload.

    The second time, the browser is told to stay where it is.

    Args:
        task: Which task.
        mode: Out of which part of the task's problems, for tasks that have several.
    """

    origin = ORIGIN

    def __init__(self, task: Task, mode: str) -> None:
        self.seed = 0
        self._task = task
        self._mode = mode
        self._begun = False

    def respond(self, request: Request) -> Response:
        """A file of the wheel; the task's page begins an episode by itself."""
        path = unquote(urlsplit(request.url).path)
        if path == self._task.page:
            return self._begin()
        content = _content(path)
        return _NOT_FOUND if content is None else Response(200, _headers(path), content)

    def get_state(self) -> dict[str, Any]:
        """The seed of the present episode, and whether its page was served."""
        return {"seed": self.seed, "begun": self._begun}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from what `get_state` returned."""
        self.seed, self._begun = state["seed"], state["begun"]

    def _begin(self) -> Response:
        if self._begun:
            return _STAY
        self._begun = True
        page = _content(self._task.page)
        assert page is not None
        start = _START % (json.dumps(self.seed), json.dumps(self._mode))
        return Response(200, _headers(self._task.page), page + start.encode())


@functools.cache  # a few megabytes in all, shared by all environments
def _files() -> frozenset[str]:
    root = folder()
    return frozenset(f"/{path.relative_to(root).as_posix()}" for path in root.rglob("*.*"))


@functools.cache
def _content(path: str) -> bytes | None:
    if path not in _files():
        return None
    return (folder() / path[1:]).read_bytes()


def _headers(path: str) -> tuple[tuple[str, str], ...]:
    kind = _TYPES.get(path.rpartition(".")[2], "application/octet-stream")
    return (("Content-Type", kind),)
