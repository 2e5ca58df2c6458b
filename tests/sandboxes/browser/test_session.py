from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from sandboxgym.sandboxes.browser import loop
from sandboxgym.sandboxes.browser.errors import PageCrashedError, PageHungError, TargetGoneError
from sandboxgym.sandboxes.browser.options import Limits, Options
from sandboxgym.sandboxes.browser.session import Session
from tests.sandboxes.browser.helpers import Driver, script

OPENER = """<title>opener</title><script>
    onmessage = e => window.told = e.data
    const open_ = (...how) => { window.other = open(...how) }</script>"""
CLOCK = """<title>popup</title><script>
    n = 0; setInterval(() => n++, 10)
    opener?.postMessage('from popup', '*')</script>"""


def test_a_popup_is_a_tab_and_becomes_the_active_one(drive):
    page = drive({"/": OPENER, "/popup": CLOCK})
    page.open()
    page.run("open_('/popup')")
    opener, popup = page.session.tabs
    assert page.session.active is popup
    assert popup.opener is opener
    assert (page.title, page.url) == ("popup", "https://site.test/popup")
    page.run("opener.document.title = 'changed'; window.close()")
    assert page.session.tabs == [opener]
    assert (page.title, page.value("told")) == ("changed", "from popup")


def test_tabs_share_time_and_each_minute_passes_once(drive):
    page = drive({"/": OPENER, "/popup": CLOCK})
    page.open()
    page.run("open_('/popup')")
    began = page.value("performance.now()")
    page.run("open('/popup', '', 'noopener')")
    page.wait(1000)
    dates = []
    for tab in page.session.tabs:
        page.session.active = tab
        dates.append(page.value("Date.now()"))
    assert len(dates) == 3
    assert len(set(dates)) == 1
    page.session.active = page.session.tabs[1]
    assert page.value("performance.now()") - began == pytest.approx(1100, abs=21)
    assert page.value("n") == pytest.approx(page.value("performance.now()") / 10, abs=1)


def test_a_popup_outlives_its_opener(drive):
    page = drive({"/": OPENER, "/popup": CLOCK})
    page.open()
    page.run("open_('/popup')")
    loop.run(page.session.close_tab(page.session.tabs[0]))
    before = page.value("n")
    page.wait(500)
    assert page.value("n") - before == pytest.approx(50, abs=1)
    page.open("/popup")
    page.wait(200)
    assert page.value("n") == pytest.approx(30, abs=1)


def test_a_page_that_is_closed_by_another_leaves_it_the_clock(drive):
    page = drive({"/": OPENER, "/popup": CLOCK})
    page.open()
    page.run("open_('/popup')")
    page.run("open('/popup')")
    loop.run(page.session.close_tab(page.session.tabs[0]))
    page.run("setTimeout(() => opener.close(), 33)")
    assert len(page.session.tabs) == 1
    date = page.value("Date.now()")
    assert date == pytest.approx(page.session.options.epoch_ms + page.session.now, abs=2)


def test_the_last_tab_is_followed_by_an_empty_one(drive):
    page = drive({"/": "<title>home"})
    page.open()
    loop.run(page.session.close_tab(page.session.active))
    assert [tab.url for tab in page.session.tabs] == ["about:blank"]
    page.open()
    assert page.title == "home"


def test_a_new_tab_shares_cookies_and_storage_but_not_the_session(drive):
    page = drive({"/": "x"})
    page.open()
    page.run("localStorage.a = 1; sessionStorage.a = 1; document.cookie = 'c=1'")
    loop.run(page.session.new_tab())
    page.open()
    assert page.value("[localStorage.a, sessionStorage.a ?? null, document.cookie]") == [
        "1",
        None,
        "c=1",
    ]


def test_only_so_many_tabs_are_opened(drive):
    page = drive({"/": "x"}, options=Options(limits=Limits(tabs=4)))
    page.open()
    page.run("for (let i = 0; i < 9; i++) open('/')")
    assert len(page.session.tabs) == 4
    assert page.session.tabs[0].refused == ["a popup was refused: more than 4 tabs were open"]
    page.wait(100)
    assert page.value("Date.now()") == int(page.session.options.epoch_ms + page.session.now)


def test_dialogs_are_answered_and_told(drive):
    page = drive(
        {
            "/": "<script>addEventListener('beforeunload', e => e.preventDefault())</script>",
            "/b": "<title>b",
        }
    )
    page.open()
    page.run("said = [alert('a'), confirm('sure?'), prompt('name?', 'x')]")
    assert page.value("said") == [None, False, None]
    told = [(d.kind, d.message, d.accepted) for d in page.session.active.dialogs]
    assert told == [("alert", "a", True), ("confirm", "sure?", False), ("prompt", "name?", False)]
    page.run("location = '/b'")
    assert page.title == "b"


def test_what_an_action_raises_is_raised_when_the_page_is_at_rest(drive):
    page = drive({"/": "<title>home"})
    page.open()

    async def fail() -> None:
        await page.session.active.cdp.send(
            "Runtime.evaluate", expression="setTimeout(() => document.title = 'later', 50)"
        )
        raise LookupError("no such element")

    with pytest.raises(LookupError, match="no such element"):
        loop.run(page.session.perform(None, fail))
    assert page.title == "later"


def test_isolated_evaluation_is_not_seen_by_the_page(drive):
    page = drive({"/": "<script>Array.prototype.map = () => 'broken'; const mine = 1</script>"})
    page.open()
    tab = page.session.active
    assert loop.run(tab.evaluate("window.mark = [1, 2].map(x => x + 1)")) == [2, 3]
    assert page.value("typeof mark") == "undefined"


def test_a_crashed_page_is_replaced(drive):
    page = drive({"/": "<title>home"})
    page.open()
    page.run("document.cookie = 'c=1'")
    with pytest.raises(PageCrashedError, match="crashed"):
        loop.run(page.session.perform(None, lambda: crash(page)), 30)
    assert page.url == "about:blank"
    page.open()
    assert (page.title, page.value("document.cookie")) == ("home", "c=1")
    assert page.value("Date.now()") == int(page.session.options.epoch_ms + page.session.now)


def test_a_page_that_crashed_between_two_actions_is_replaced_at_the_next(drive):
    page = drive({"/": "<title>home"})
    page.open()
    with pytest.raises(TargetGoneError):
        loop.run(crash(page), 30)
    with pytest.raises(PageCrashedError, match="crashed"):
        page.run("1")
    page.open()
    assert page.title == "home"


async def crash(page: Driver) -> None:
    page.session.active.cdp.post("Page.crash")
    await page.session.active.cdp.send("Runtime.evaluate", expression="1")


def test_a_crash_takes_only_the_tabs_of_its_process(drive):
    page = drive({"/": "<title>home"})
    page.open()
    first = page.session.active
    loop.run(page.session.new_tab())
    page.open()
    with pytest.raises(PageCrashedError):
        loop.run(page.session.perform(None, lambda: crash(page)), 30)
    page.session.active = first
    assert page.title == "home"
    page.wait(100)


def test_sessions_see_nothing_of_each_other(drive):
    pages = {"/": "x", "/sw.js": script("")}
    one = drive(pages)
    one.open()
    one.run("""localStorage.a = 1; sessionStorage.a = 1; document.cookie = 'c=1'
        indexedDB.open('d'); caches.open('k')
        new BroadcastChannel('b').onmessage = () => window.heard = true""")
    other = drive(pages)
    other.open()
    other.run("""new BroadcastChannel('b').postMessage(1)
        indexedDB.databases().then(all => databases = all.length)
        caches.keys().then(all => keys = all.length)""")
    seen = "[localStorage.length, sessionStorage.length, document.cookie, databases, keys]"
    assert other.value(seen) == [0, 0, "", 0, 0]
    one.wait(100)
    assert one.value("typeof heard") == "undefined"


def test_an_ended_session_leaves_nothing_to_the_next(drive):
    for _ in range(4):
        page = Driver({"/": "x"})
        page.open()
        assert page.value("[localStorage.length, document.cookie]") == [0, ""]
        page.run("localStorage.a = 1; document.cookie = 'c=1; max-age=1000'")
        page.close()


def test_sessions_run_side_by_side_in_threads(drive):
    body = "<script>n = Math.random(); setInterval(() => n += Math.random(), 7)</script>"
    results: list[float] = []

    def play() -> None:
        page = Driver({"/": body}, Options(seed=5))
        page.open()
        for _ in range(5):
            page.wait(100)
        results.append(page.value("n"))
        page.close()

    threads = [threading.Thread(target=play) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    assert len(set(results)) == 1


def test_a_page_that_hangs_while_it_is_drawn_ends_no_other(drive):
    one, other = drive({"/": "x"}), drive({"/": "<title>other"})
    one.open()
    other.open()
    one.session.options = replace(one.session.options, wall_s=3)
    other.session.options = replace(other.session.options, wall_s=1)

    def hang_() -> None:
        with pytest.raises(PageHungError):
            one.run("requestAnimationFrame(() => { while (true) ; })")

    hanging = threading.Thread(target=hang_)
    hanging.start()
    while hanging.is_alive():
        other.run("document.title += '.'")
    hanging.join()
    assert other.title.startswith("other.")


def test_a_session_can_begin_at_any_time(drive):
    page = drive({"/": "<script>began = [Date.now(), performance.now()]</script>"})
    loop.run(page.session.close())
    page.session = loop.run(Session.start(page.site, None, now=123_456.0))
    page.open()
    assert page.value("began") == [1_735_732_800_000 + 123_456, 0]


def test_a_page_may_go_in_the_middle_of_a_click(drive):
    page = drive({"/": "<title>home</title>", "/popup": "popup"})
    page.open()
    page.run("open('/popup')")
    popup = page.session.active

    async def close_then_click() -> None:
        await popup.cdp.send("Runtime.evaluate", expression="close()")
        await popup.mouse("mousePressed", 5, 5, button="left", clickCount=1)
        await popup.mouse("mouseReleased", 5, 5, button="left", clickCount=1)

    loop.run(page.session.perform(None, close_then_click), 60)
    assert page.title == "home"
    assert page.session.tabs == [page.session.active]


def test_a_click_is_never_from_before_the_document_began(drive):
    page = drive(
        {
            "/": "<style>a { position: fixed; inset: 0 }</style><a href=/app>app</a>",
            "/app": """<title>app</title><body><script>
                onclick = () => {
                    history.pushState(null, '', '/app/notes')
                    document.body.innerHTML = '<h1>Notes of all that was</h1>'
                }</script>""",
        }
    )
    page.open()
    page.wait(10_000)  # in no time: the real clock stays behind
    page.click(50, 50)
    page.click(50, 50)
    page.wait(100)
    assert (page.url, page.title) == ("https://site.test/app/notes", "app")


def test_a_page_that_cannot_be_read_in_time_is_replaced(drive):
    page = drive({"/": "<title>home</title>"}, options=Options(wall_s=1.0))
    page.open()
    with pytest.raises(PageHungError, match=r"site\.test/ could not be read within 1\.0 s"):
        loop.run(page.session.read(lambda tab: tab.evaluate("for (;;);")), 60)
    assert page.url == "about:blank"
    page.open()
    assert page.title == "home"
