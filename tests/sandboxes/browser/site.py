"""A site with a page for everything that a fork of a browser has to get right.

Pages are in the folder `pages`; here is what its server does. All of its state is in one dict.
"""

from __future__ import annotations

import copy
import html
import json
from collections.abc import Callable, Iterable
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

PAGES = Path(__file__).parent / "pages"

NAMES = [
    *("history", "tabs", "frames", "dialogs", "download", "files", "editable", "focus", "scroll"),
    *("select", "canvas", "components", "indexeddb", "storage", "spa", "timers", "fetch"),
    *("websocket", "chance", "workers", "drag", "keys", "outside", "drawing"),
]
SERVED = ["redirect", "form", "slow-parts"]  # pages that the server makes itself

HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<link rel="stylesheet" href="/style.css"><p><a href="/">index</a></p>
"""
STYLE = "body { font: 14px 'Liberation Sans', sans-serif; margin: 8px } output { color: navy }"
WORKER = """let n = 0;
onmessage = () => postMessage("worker " + ++n + " " + Math.random().toFixed(4));
"""

Response = tuple[str, list[tuple[str, str]], bytes]


class TestSite:
    """The site as a WSGI application, with the hooks that make its server forkable."""

    __test__ = False  # pytest: not a class of tests

    def __init__(self) -> None:
        self.state: dict[str, Any] = {
            "visits": 0,
            "posts": [],
            "notes": ["first"],
            "count": 0,
            "logins": 0,
            "uploads": [],
        }

    def get_state(self) -> dict[str, Any]:
        return copy.deepcopy(self.state)

    def set_state(self, state: dict[str, Any]) -> None:
        self.state = copy.deepcopy(state)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        size = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(size) if size else b""
        status, headers, content = self.answer(environ, body)
        start_response(status, headers)
        return [content]

    def answer(self, environ: dict[str, Any], body: bytes) -> Response:
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        query = parse_qs(environ.get("QUERY_STRING", ""))
        name = path.strip("/").replace("-", "_").replace(".", "_").replace("/", "_")
        served = getattr(self, f"at_{name or 'index'}", None)
        if served is not None:
            response: Response = served(environ, method, query, body)
            return response
        page = path.strip("/").split("/")[0]
        if page in {*NAMES, "popup", "frame", "hangs"}:
            self.state["visits"] += page not in {"frame"}
            return page_of(page, (PAGES / f"{page}.html").read_text("utf-8"))
        return "404 Not Found", [("Content-Type", "text/plain")], f"no {path}".encode()

    def at_index(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        links = "".join(f'<li><a href="/{name}">{name}</a></li>' for name in [*SERVED, *NAMES])
        return page_of(
            "index", f"<h1>Index</h1><p>visits {self.state['visits']}</p><ul>{links}</ul>"
        )

    def at_redirect(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        self.state["visits"] += 1
        cookie = [("Set-Cookie", f"hop={self.state['visits']}; Path=/")]
        return "302 Found", [("Location", "/redirect/second"), *cookie], b""

    def at_redirect_second(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        return "303 See Other", [("Location", "/landed?by=redirect#end")], b""

    def at_landed(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        cookie = html.escape(environ.get("HTTP_COOKIE", "none"))
        return page_of(
            "landed", f"<h1>Landed</h1><p>{cookie}</p><p id=end>{self.state['visits']}</p>"
        )

    def at_loop(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        return "302 Found", [("Location", "/loop?again")], b""

    def at_form(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        fields = '<input name="word" aria-label="word"><input type="checkbox" name="tick">'
        fields += "<button>send</button>"
        return page_of(
            "form",
            f'<h1>Form</h1><form method="post" action="/posted">{fields}<button formaction="/prg">'
            'send and go</button></form><form action="/landed">' + fields + "</form>",
        )

    def at_posted(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        if method == "POST":
            self.state["posts"].append(body.decode("utf-8", "replace"))
        said = html.escape(str(self.state["posts"]))
        draft = '<input aria-label="draft"><button onclick="this.textContent += 1">more</button>'
        return page_of("posted", f"<h1>Posted</h1><p>{said}</p>{draft}<a href='/form'>another</a>")

    def at_prg(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        self.state["posts"].append(body.decode("utf-8", "replace"))
        return "303 See Other", [("Location", f"/posted?n={len(self.state['posts'])}")], b""

    def at_slow_parts(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        parts = "".join(f'<script src="/part.js?n={n}"></script>' for n in range(5))
        return page_of(
            "parts", f'<h1>Parts</h1><p id="parts"></p>{parts}<img alt="dot" src="/dot.svg">'
        )

    def at_part_js(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        script = f"document.getElementById('parts').textContent += {query['n'][0]!r};"
        return "200 OK", [("Content-Type", "text/javascript")], script.encode()

    def at_dot_svg(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        picture = (
            b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle r="9"/></svg>'
        )
        return "200 OK", [("Content-Type", "image/svg+xml")], picture

    def at_style_css(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        return "200 OK", [("Content-Type", "text/css")], STYLE.encode()

    def at_worker_js(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        return "200 OK", [("Content-Type", "text/javascript")], WORKER.encode()

    at_service_worker_js = at_worker_js

    def at_file_csv(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        attachment = ("Content-Disposition", 'attachment; filename="file.csv"')
        return "200 OK", [("Content-Type", "text/csv"), attachment], b"a,b\n1,2\n"

    def at_upload(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        # The boundary is drawn by the browser; what lies between does not depend on it.
        boundary = body.split(b"\r\n", 1)[0]
        parts = [part.decode("utf-8", "replace") for part in body.split(boundary)[1:-1]]
        self.state["uploads"].append(parts)
        return page_of("uploaded", f"<h1>Uploaded</h1><pre>{html.escape(str(parts))}</pre>")

    def at_login(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        self.state["logins"] += 1
        cookies = [("Set-Cookie", f"user=u{self.state['logins']}; HttpOnly; Path=/; SameSite=Lax")]
        return "303 See Other", [("Location", "/account"), *cookies], b""

    def at_logout(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        gone = ("Set-Cookie", "user=; Path=/; Max-Age=0")
        return "303 See Other", [("Location", "/account"), gone], b""

    def at_account(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        user = SimpleCookie(environ.get("HTTP_COOKIE", "")).get("user")
        name = html.escape(user.value) if user else "nobody"
        return page_of("account", f"<h1>Account</h1><p>{name}</p><a href='/storage'>storage</a>")

    def at_api_notes(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        if method == "POST":
            self.state["notes"].append(json.loads(body))
        return as_json(self.state["notes"])

    def at_api_count(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        self.state["count"] += 10 if method == "POST" else 1
        return as_json({"count": self.state["count"]})

    def at_favicon_ico(self, environ: Any, method: str, query: Any, body: bytes) -> Response:
        return "204 No Content", [], b""


def page_of(title: str, content: str) -> Response:
    text = HEAD.format(title=title) + content
    return "200 OK", [("Content-Type", "text/html; charset=utf-8")], text.encode()


def as_json(value: Any) -> Response:
    return "200 OK", [("Content-Type", "application/json")], json.dumps(value).encode()
