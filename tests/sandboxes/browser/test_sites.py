from __future__ import annotations

from typing import Any

import pytest

from sandboxgym.core.errors import DataNotFoundError
from sandboxgym.sandboxes.browser import sites
from sandboxgym.sandboxes.browser.errors import SiteError
from sandboxgym.sandboxes.browser.sites import Request


def get(path: str, **headers: str) -> Request:
    return Request("GET", sites.ORIGIN + path, headers)


class Counter:
    """A WSGI application with a state."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        self.count += 1
        self.environ = environ
        self.body = environ["wsgi.input"].read()
        start_response("201 Created", [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])
        return [b"call ", str(self.count).encode()]

    def get_state(self) -> int:
        return self.count

    def set_state(self, state: int) -> None:
        self.count = state


def test_a_wsgi_application_is_called_as_by_a_server():
    app = Counter()
    request = Request(
        "POST",
        sites.ORIGIN + "/a%20path?x=1&y=%C3%A9",
        {"cookie": "sid=7", "content-type": "text/plain", "accept-language": "en-US"},
        b"posted",
    )
    response = sites.WSGISite(app).respond(request)
    assert response.status == 201
    assert response.body == b"call 1"
    assert response.headers == (("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"))
    environ = app.environ
    assert environ["REQUEST_METHOD"] == "POST"
    assert environ["PATH_INFO"] == "/a path"
    assert environ["QUERY_STRING"] == "x=1&y=%C3%A9"
    assert environ["HTTP_COOKIE"] == "sid=7"
    assert environ["HTTP_ACCEPT_LANGUAGE"] == "en-US"
    assert environ["CONTENT_TYPE"] == "text/plain"
    assert environ["CONTENT_LENGTH"] == "6"
    assert environ["wsgi.url_scheme"] == "https"
    assert environ["HTTP_HOST"] == "site.test"
    assert app.body == b"posted"


def test_a_sites_state_is_its_applications():
    site = sites.WSGISite(Counter())
    site.respond(get("/"))
    site.set_state(41)
    assert site.respond(get("/")).body == b"call 42"
    assert site.get_state() == 42


def test_an_application_without_hooks_has_no_state():
    site = sites.WSGISite(wsgi_app)
    assert site.get_state() is None
    with pytest.raises(SiteError, match="no set_state"):
        site.set_state(1)


def test_each_environment_has_an_application_of_its_own():
    make = sites.wsgi(Counter)
    one, other = make(), make()
    one.respond(get("/"))
    assert (one.get_state(), other.get_state()) == (1, 0)


def test_flask_runs():
    flask = pytest.importorskip("flask")

    def make() -> Any:
        app = flask.Flask("shop")

        @app.route("/hello/<name>", methods=["POST"])
        def hello(name: str) -> Any:
            answer = flask.make_response(f"{name} {flask.request.form['a']}")
            answer.set_cookie("seen", "1")
            return answer

        return app

    request = Request(
        "POST",
        sites.ORIGIN + "/hello/you",
        {"content-type": "application/x-www-form-urlencoded"},
        b"a=b",
    )
    response = sites.wsgi(make)().respond(request)
    assert (response.status, response.body) == (200, b"you b")
    assert any(name == "Set-Cookie" for name, _ in response.headers)


def test_an_asgi_application_runs_without_a_server():
    starlette = pytest.importorskip("starlette.applications")
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    events: list[str] = []

    def make() -> Any:
        import contextlib

        @contextlib.asynccontextmanager
        async def lifespan(_app: Any) -> Any:
            events.append("up")
            yield
            events.append("down")

        async def hello(request: Any) -> Any:
            form = (await request.body()).decode()
            name, asked = request.path_params["name"], request.query_params["q"]
            return PlainTextResponse(
                f"{request.method} {name} {asked} {form}", 202, {"x-a": request.headers["cookie"]}
            )

        route = Route("/hello/{name}", hello, methods=["POST"])
        return starlette.Starlette(routes=[route], lifespan=lifespan)

    site = sites.asgi(make)()
    request = Request("POST", sites.ORIGIN + "/hello/you?q=%20x", {"cookie": "s=1"}, b"body")
    response = site.respond(request)
    assert (response.status, response.body) == (202, b"POST you  x body")
    assert ("x-a", "s=1") in response.headers
    site.respond(request)
    assert events == ["up"]
    site.close()
    assert events == ["up", "down"]


def test_an_asgi_application_may_do_without_lifespan():
    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": b"one ", "more_body": True})
        await send({"type": "http.response.body", "body": b"two"})

    site = sites.asgi(lambda: app)()
    response = site.respond(get("/"))
    assert (response.body, response.headers) == (b"one two", (("a", "b"),))
    site.close()


def test_an_asgi_application_that_does_not_start_says_why():
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})

    site = sites.asgi(lambda: app)()
    with pytest.raises(SiteError, match="no database"):
        site.respond(get("/"))
    site.close()


def test_a_folder_is_served_and_nothing_outside_of_it(tmp_path):
    root = tmp_path / "dist"
    (root / "sub").mkdir(parents=True)
    (root / "index.html").write_text("home")
    (root / "sub" / "index.html").write_text("sub")
    (root / "app.js").write_text("1")
    (root / "ä b.txt").write_text("umlaut")
    (tmp_path / "secret").write_text("secret")
    (root / "link").symlink_to(tmp_path / "secret")
    site = sites.folder(root)()

    def body(path: str) -> bytes:
        return site.respond(get(path)).body

    assert body("/") == b"home"
    assert body("/sub/") == b"sub"
    assert body("/%C3%A4%20b.txt") == b"umlaut"
    assert ("Content-Type", "text/javascript") in site.respond(get("/app.js")).headers
    redirected = site.respond(get("/sub"))
    assert (redirected.status, redirected.headers) == (301, (("Location", "/sub/"),))
    for path in ("/none", "/../secret", "/..%2fsecret", "/link", "/%00"):
        assert site.respond(get(path)).status == 404, path
    assert site.respond(Request("POST", sites.ORIGIN + "/", {})).status == 405
    assert site.get_state() == {}
    site.set_state({})


def test_a_folder_has_to_exist(tmp_path):
    with pytest.raises(DataNotFoundError, match="none"):
        sites.folder(tmp_path / "none")


def test_a_site_elsewhere_is_asked_over_the_network(tmp_path):
    import http.server
    import threading

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = 302 if self.path == "/go" else 404
            self.send_response(status)
            self.send_header("Location", "/there")
            self.send_header("Set-Cookie", "a=1")
            self.send_header("Set-Cookie", "b=2")
            self.end_headers()
            self.wfile.write(body + self.headers["cookie"].encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        site = sites.external(url + "/start")()
        assert site.origin == url
        assert site.get_state() is None
        assert site.external
        response = site.respond(Request("POST", url + "/go", {"cookie": "c=3"}, b"x"))
        assert (response.status, response.body) == (302, b"xc=3")
        assert [v for n, v in response.headers if n == "Set-Cookie"] == ["a=1", "b=2"]
        assert site.respond(Request("POST", url + "/x", {"cookie": ""}, b"")).status == 404
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(SiteError, match="not be reached"):
        site.respond(Request("GET", url + "/", {}))


async def asgi_app(scope: Any, receive: Any, send: Any) -> None: ...


def wsgi_app(environ: Any, start_response: Any) -> list[bytes]:
    return []


def test_a_factory_is_found_for_whatever_is_given(tmp_path):
    here = f"{__name__}:Counter"
    for given, kind in (
        (lambda: wsgi_app, sites.WSGISite),
        (lambda: asgi_app, sites.ASGISite),
        (lambda: sites.FolderSite(tmp_path), sites.FolderSite),
        (here, sites.WSGISite),
        (tmp_path, sites.FolderSite),
        (str(tmp_path), sites.FolderSite),
        ("http://127.0.0.1:1/x", sites.ExternalSite),
    ):
        assert type(sites.site_factory(given)()) is kind, given


@pytest.mark.parametrize("given", ["no.such.module:app", f"{__name__}:nothing", "/no/such/folder"])
def test_what_names_no_site_is_refused(given):
    with pytest.raises(DataNotFoundError):
        sites.site_factory(given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (7, "got 7"),
        (Counter(), "give a function without arguments that makes one"),
        (lambda name: Counter(), "missing a required argument: 'name'"),
    ],
)
def test_what_is_no_function_that_makes_a_site_is_refused(given, why):
    with pytest.raises(TypeError, match=why):
        sites.site_factory(given)


def test_a_function_that_makes_no_site_is_found_out():
    with pytest.raises(TypeError, match="returned None: no application"):
        sites.site_factory(lambda: None)()
