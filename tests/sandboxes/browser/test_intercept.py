from __future__ import annotations

import pytest

from sandboxgym.sandboxes.browser import loop
from sandboxgym.sandboxes.browser.errors import (
    ClockLostError,
    NavigationRefusedError,
    PageLimitError,
    SiteError,
)
from sandboxgym.sandboxes.browser.messages import Request, Response
from sandboxgym.sandboxes.browser.options import Limits, Options
from sandboxgym.sandboxes.browser.recording import Replay
from tests.sandboxes.browser.helpers import html, redirect, script
from tests.waiting import wait_until

FORM = """<form id=f method=post action=/sent enctype={}><input name=a value='1 é'>
    <textarea name=b>x\ny</textarea></form>"""


def test_a_document_and_all_that_it_needs_come_from_the_site(drive):
    page = drive(
        {
            "/": "<link rel=stylesheet href=/s.css><script src=/a.js></script><img src=/i.svg>"
            "<iframe src=/inner></iframe>",
            "/s.css": Response(200, (("Content-Type", "text/css"),), b"body{color:rgb(1,2,3)}"),
            "/a.js": script(
                "window.ran = true; fetch('/data?x=1').then(r => r.text())"
                ".then(t => window.data = t)"
            ),
            "/i.svg": Response(
                200,
                (("Content-Type", "image/svg+xml"),),
                b'<svg xmlns="http://www.w3.org/2000/svg" width="7" height="5"/>',
            ),
            "/inner": "<p>inner",
            "/data": lambda request: html(request.url[-3:]),
        }
    )
    page.open()
    assert page.value("[ran, data, document.images[0].width, frames.length]") == [True, "x=1", 7, 1]
    assert page.value("getComputedStyle(document.body).color") == "rgb(1, 2, 3)"
    assert sorted(page.site.paths) == ["/", "/a.js", "/data?x=1", "/i.svg", "/inner", "/s.css"]


def test_a_redirect_is_followed_through_the_site(drive):
    page = drive({"/": redirect("/b"), "/b": redirect("/c?x"), "/c": "<title>end</title>"})
    page.open()
    assert (page.url, page.title) == ("https://site.test/c?x", "end")
    assert page.site.paths == ["/", "/b", "/c?x"]


def test_a_redirect_after_a_post_becomes_a_get(drive):
    page = drive({"/": FORM.format(""), "/sent": redirect("/thanks"), "/thanks": "<title>thanks"})
    page.open()
    page.run("f.submit()")
    assert page.title == "thanks"
    assert [request.method for request in page.site.asked] == ["GET", "POST", "GET"]


def test_cookies_are_kept_and_sent(drive):
    def login(_request: Request) -> Response:
        response = html("<a id=a href=/b>b</a>", ("Set-Cookie", "sid=7; HttpOnly; Secure"))
        return Response(303, (*response.headers, ("Location", "/home"), ("Set-Cookie", "b=2")))

    page = drive(
        {
            "/": login,
            "/home": "<a id=a href=/b>b</a><script>document.cookie='c=3'</script>",
            "/b": "<img src=/i>",
        }
    )
    page.open()
    page.run("a.click()")
    sent = {request.url[17:]: request.headers.get("cookie") for request in page.site.asked}
    assert sent == {
        "/": None,
        "/home": "sid=7; b=2",
        "/b": "sid=7; b=2; c=3",
        "/i": "sid=7; b=2; c=3",
    }
    assert page.value("document.cookie") == "b=2; c=3"


def test_forms_are_posted_as_they_are(drive):
    page = drive({"/": FORM.format(""), "/m": FORM.format("multipart/form-data"), "/sent": "ok"})
    page.open()
    page.run("f.submit()")
    assert page.site.asked[-1].body == b"a=1+%C3%A9&b=x%0D%0Ay"
    assert page.site.asked[-1].headers["content-type"] == "application/x-www-form-urlencoded"
    page.open("/m")
    page.run("f.submit()")
    posted = page.site.asked[-1]
    boundary = posted.headers["content-type"].partition("boundary=")[2].encode()
    parts = posted.body.split(b"--" + boundary)
    assert [part.partition(b"\r\n\r\n")[2] for part in parts[1:3]] == [
        b"1 \xc3\xa9\r\n",
        b"x\r\ny\r\n",
    ]
    page.open("/m")
    page.run("f.submit()")
    assert page.site.asked[-1].body == posted.body  # the boundary is the same each time


def test_requests_of_all_kinds_have_their_bodies(drive):
    page = drive({"/": "x", "/to": "y"})
    page.open()
    for sending in (
        "fetch('/to', {method: 'PUT', body: new Uint8Array([0, 255, 10])})",
        "fetch('/to', {method: 'PUT', body: new Blob([new Uint8Array([0, 255, 10])])})",
        "navigator.sendBeacon('/to', new Uint8Array([0, 255, 10]))",
        "x = new XMLHttpRequest, x.open('PUT', '/to', false), x.send(new Uint8Array([0, 255, 10]))",
    ):
        page.run(sending)
        assert page.site.asked[-1].body == b"\x00\xff\n", sending


def test_a_page_that_is_gone_back_to_is_loaded_anew(drive):
    page = drive(
        {
            "/": lambda r: html(f"<title>{len(page.site.asked)}</title><a id=a href=/b>"),
            "/b": FORM.format(""),
            "/sent": "<title>sent",
        }
    )
    page.open()
    page.run("a.click()")
    page.run("history.back()")
    assert page.title == "3"
    page.run("history.forward()")
    page.run("f.submit()")
    assert page.title == "sent"
    page.run("history.go(-2)")
    assert page.url == "https://site.test/"
    page.run("history.forward()")
    page.run("history.forward()")
    assert (page.title, page.site.asked[-1].method) == ("sent", "POST")
    page.wait(200)  # time still passes


def test_going_back_within_a_document_loads_nothing(drive):
    page = drive({"/": "<script>onpopstate = e => window.popped = e.state</script>"})
    page.open()
    page.run("history.pushState(1, '', '/one'); history.pushState(2, '', '/two')")
    page.run("history.back()")
    assert (page.url, page.value("popped")) == ("https://site.test/one", 1)
    assert page.site.paths == ["/"]


@pytest.mark.parametrize("path", ["/nothing", "/refuses", "/empty-error"])
def test_what_brings_no_document_leaves_a_usable_tab(drive, path):
    page = drive(
        {
            "/": "<title>home",
            "/nothing": Response(204, ()),
            "/refuses": redirect("https://elsewhere.test/"),
            "/empty-error": Response(500, ()),
        }
    )
    page.open()
    page.run(f"location = '{path}'")
    assert page.title == ("" if path == "/empty-error" else "home")
    page.open("/")
    page.wait(100)
    assert page.title == "home"


@pytest.mark.parametrize(
    "response",
    [
        Response(200, (("Content-Type", "application/zip"),), b"PK"),
        Response(200, (("Content-Disposition", "attachment; filename=a.txt"),), b"a"),
    ],
)
def test_a_download_is_refused_by_name(drive, response):
    page = drive({"/": "<title>home", "/file": response})
    page.open()
    page.run("location = '/file'")
    assert page.refused == ["the download of https://site.test/file was refused"]
    assert page.title == "home"
    with pytest.raises(NavigationRefusedError, match="brought no document"):
        page.open("/file")


def test_what_a_page_makes_itself_cannot_be_saved_either(drive):
    page = drive({"/": "<a id=a download=x>"})
    page.open()
    page.run("a.href = URL.createObjectURL(new Blob(['x'])); a.click()")
    wait_until(lambda: page.session.active.traffic.downloads, seconds=5)  # Chromium takes its time
    assert page.session.active.traffic.downloads == 1
    assert page.refused == []


def test_endless_redirects_end(drive):
    page = drive({"/": "<title>home", "/loop": redirect("/loop")})
    page.open()
    with pytest.raises(PageLimitError, match="more than 15 redirects"):
        page.run("location = '/loop'")
    assert page.title == "home"
    page.wait(100)


def test_a_page_that_asks_and_asks_is_ended(drive):
    page = drive(
        {"/": "<script>for (let i = 0; i < 99; i++) fetch('/x')</script>", "/x": ""},
        options=Options(limits=Limits(requests=50)),
    )
    with pytest.raises(PageLimitError, match="more than 50 requests"):
        page.open()
    assert page.url == "about:blank"
    page.open("/x")


@pytest.mark.parametrize("megabytes", [4, pytest.param(50, marks=pytest.mark.slow)])
def test_a_large_page_is_shown_and_a_larger_one_is_not(drive, megabytes):
    text = "<title>large</title><template>" + "x" * (megabytes * 2**20) + "</template>"
    limits = Limits(body_bytes=len(text))
    page = drive(
        {"/": text, "/larger": text + "y", "/small": "<title>small"},
        options=Options(limits=limits, wall_s=120),
    )
    page.open()
    length = page.value("document.querySelector('template').content.textContent.length")
    assert length == megabytes * 2**20
    with pytest.raises(PageLimitError, match=f"over the limit of {len(text)}: raise Limits"):
        page.open("/larger")
    page.open("/small")
    assert page.title == "small"


def test_a_site_that_raises_is_named_and_the_page_sees_an_error(drive):
    def fail(_request: Request) -> Response:
        raise LookupError("no such thing")

    page = drive({"/": "<title>home", "/fail": fail})
    page.open()
    with pytest.raises(SiteError, match=r"LookupError at GET .*/fail: no such thing"):
        page.run("fetch('/fail').then(r => window.status_was = r.status)")
    assert page.value("status_was") == 500
    page.wait(100)


def test_a_recorded_document_can_be_shown_without_the_site(drive):
    page = drive(
        {
            "/": redirect("/a"),
            "/a": "<title>a</title><script src=/a.js></script>",
            "/a.js": script("fetch('/n').then(r => r.text()).then(t => window.n = t)"),
            "/n": lambda r: html(str(len(page.site.asked))),
        }
    )
    page.open()
    other = drive({})
    replay = Replay(page.session.recorder.story.exchanges)
    other.session.recorder.replay = replay
    other.open()
    assert (other.title, other.value("n")) == ("a", page.value("n"))
    assert (replay.missed, other.site.asked) == ([], [])
    other.run("fetch('/new').catch(error => window.error = String(error))")
    assert other.value("error") == "TypeError: Failed to fetch"
    assert [request.url for request in replay.missed] == ["https://site.test/new"]


COOP = ("Cross-Origin-Opener-Policy", "same-origin")
COEP = ("Cross-Origin-Embedder-Policy", "require-corp")
DIP = ("Document-Isolation-Policy", "isolate-and-require-corp")


@pytest.mark.parametrize(
    ("headers", "refused"),
    [((COOP,), False), ((COOP, COEP), True), ((COEP,), False), ((DIP,), True)],
    ids=["opener", "opener and embedder", "embedder", "document"],
)
def test_no_header_moves_a_page_to_another_process(drive, headers, refused):
    isolated = html("<title>shown</title><p id=p><script>p.id = crossOriginIsolated</script>",
                    *headers)  # fmt: skip
    page = drive({"/": isolated, "/plain": "<title>plain</title><iframe src=/></iframe>"})
    for _ in range(2):
        page.open("/")
        assert (page.title, page.value("document.querySelector('p').id")) == ("shown", "false")
        wish = ["https://site.test/ was refused to be cross-origin isolated"]
        assert page.refused == (wish if refused else [])
        page.open("/plain")
        page.wait(100)
        assert page.title == "plain"


def test_a_page_of_another_process_is_replaced(drive):
    page = drive({"/": "<title>home</title>"})
    cdp = page.session.active.cdp
    elsewhere = "data:text/html,elsewhere"  # where neither an agent nor a page can go
    loop.run(page.session.perform(None, lambda: cdp.send("Page.navigate", url=elsewhere)), 60)
    with pytest.raises(ClockLostError, match="this page cannot be shown, go to another one"):
        page.open()
    assert page.url == "about:blank"
    page.open()
    assert page.title == "home"
