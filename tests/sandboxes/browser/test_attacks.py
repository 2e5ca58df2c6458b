"""What a page, or an agent, tries in order to get out; each is refused by its name."""

from __future__ import annotations

import json
import socket

import pytest

from sandboxgym.sandboxes.browser import loop
from sandboxgym.sandboxes.browser.errors import NavigationRefusedError, PageLimitError
from tests.sandboxes.browser.helpers import script

HOME = "<title>home</title><body><script>got = []; const note = what => got.push(String(what))"
ELSEWHERE = "https://elsewhere.test/secret"


@pytest.fixture
def page(drive):
    page = drive(
        {
            "/": HOME + "</script>",
            "/file": "<title>file",
            "/worker.js": script(
                "onmessage = async e => { try { postMessage(await eval(e.data)) }"
                " catch (error) { postMessage(String(error)) } }"
            ),
        }
    )
    page.open()
    return page


@pytest.mark.parametrize(
    ("attempt", "named"),
    [
        (f"fetch('{ELSEWHERE}').catch(note)", ELSEWHERE),
        (f"fetch('{ELSEWHERE}', {{mode: 'no-cors', method: 'POST', body: 'x'}}).catch(note)",
         ELSEWHERE),
        (f"navigator.sendBeacon('{ELSEWHERE}', 'x')", ELSEWHERE),
        (f"new Image().src = '{ELSEWHERE}'", ELSEWHERE),
        (f"document.body.innerHTML = '<iframe src={ELSEWHERE}></iframe>'", ELSEWHERE),
        (f"document.head.innerHTML = '<link rel=stylesheet href={ELSEWHERE}>'", ELSEWHERE),
        (f"import('{ELSEWHERE}').catch(note)", ELSEWHERE),
        (f"new EventSource('{ELSEWHERE}')", ELSEWHERE),
        (f"location = '{ELSEWHERE}'", ELSEWHERE),
        (f"open('{ELSEWHERE}')", ELSEWHERE),
        ("fetch('https://site.test:8443/').catch(note)", "https://site.test:8443/"),
        ("fetch('http://127.0.0.1:80/').catch(note)", "http://127.0.0.1/"),
        ("fetch('http://169.254.169.254/latest').catch(note)", "http://169.254.169.254/latest"),
        ("location = 'file:///etc/passwd'", "file:///etc/passwd"),
        ("open('file:///etc/passwd')", "file:///etc/passwd"),
        ("document.body.innerHTML = '<iframe src=file:///etc/passwd></iframe>'",
         "file:///etc/passwd"),
        ("location = 'chrome://version'", "chrome://version"),
        ("location = 'mailto:someone@elsewhere.test'", "mailto:someone@elsewhere.test"),
        ("new WebSocket('wss://elsewhere.test/s').onclose = e => note(e.code)",
         "WebSocket (wss://elsewhere.test/s)"),
        ("new WebSocket('/same').onclose = e => note(e.code)", "WebSocket (wss://site.test/same)"),
        ("try { new RTCPeerConnection() } catch (e) { note(e) }", "RTCPeerConnection"),
        ("try { new WebTransport('https://elsewhere.test') } catch (e) { note(e) }",
         "WebTransport"),
        ("try { new SharedWorker('/w.js') } catch (e) { note(e) }", "SharedWorker (/w.js)"),
        ("navigator.serviceWorker.register('/w.js').catch(note)", "service worker (/w.js)"),
        ("navigator.clipboard.readText().catch(note)", "clipboard (readText)"),
        ("navigator.clipboard.writeText('x').catch(note)", "clipboard (writeText)"),
        ("getSelection().selectAllChildren(document.body); document.execCommand('copy')",
         "clipboard (copy)"),
    ],
)  # fmt: skip
def test_a_door_is_shut_and_named(page, attempt, named):
    page.run(attempt)
    refused = [what for tab in page.session.tabs for what in tab.refused]
    assert any(named in what for what in refused), refused
    assert page.session.tabs[0].url == "https://site.test/"
    assert all("elsewhere" not in request.url for request in page.site.asked)
    page.wait(100)
    page.open("/file")
    assert page.title == "file"


@pytest.mark.parametrize(
    ("attempt", "named"),
    [
        (f"fetch('{ELSEWHERE}')", ELSEWHERE),
        (f"importScripts('{ELSEWHERE}')", ELSEWHERE),
        ("new WebSocket('wss://elsewhere.test/') && 0", "WebSocket (wss://elsewhere.test/)"),
        ("new Worker('/worker.js')", "Worker of a worker"),
    ],
)
def test_workers_have_the_same_doors(page, attempt, named):
    page.run(
        "w = new Worker('/worker.js'); w.onmessage = e => note(e.data);"
        f" w.postMessage({json.dumps(attempt)})"
    )
    assert any(named in what for what in page.refused), page.refused
    assert page.value("got.length") == 1
    assert all("elsewhere" not in request.url for request in page.site.asked)
    page.wait(100)


@pytest.mark.parametrize(
    "url", [ELSEWHERE, "file:///etc/passwd", "chrome://version", "data:text/html,x",
            "javascript:1", "view-source:https://site.test/", "http://site.test/"]
)  # fmt: skip
def test_an_agent_goes_nowhere_else(page, url):
    with pytest.raises(NavigationRefusedError, match=r"there is only https://site\.test to go to"):
        page.open(url)
    assert page.title == "home"


def test_nothing_reaches_a_server_on_this_machine(page):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        page.run(
            f"""for (const host of ['127.0.0.1', 'localhost', '[::1]']) {{
                const url = 'http://' + host + ':{port}/'
                fetch(url).catch(note); new Image().src = url
                open(url, '', 'noopener')
                try {{ new WebSocket(url.replace('http', 'ws')) }} catch (e) {{ note(e) }}
                document.head.append(Object.assign(
                    document.createElement('link'), {{rel: 'preconnect', href: url}}))
            }}"""
        )
        page.wait(500)
        server.settimeout(0.5)
        with pytest.raises(TimeoutError):
            server.accept()


def test_what_one_episode_copies_no_other_pastes(drive):
    one, other = drive({"/": "<textarea id=t>secret</textarea>"}), drive({"/": "<textarea id=t>"})
    one.open()
    other.open()

    async def press(driver, key, code):
        cdp = driver.session.active.cdp
        for kind in ("rawKeyDown", "keyUp"):
            await cdp.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=code, modifiers=2,
                windowsVirtualKeyCode=ord(key.upper()), commands=[],
            )  # fmt: skip

    for driver, keys in ((one, "ac"), (other, "v")):
        driver.run("t.focus()")
        for key in keys:
            loop.run(
                driver.session.perform(None, lambda d=driver, k=key: press(d, k, f"Key{k.upper()}"))
            )
    assert one.value("t.value.slice(t.selectionStart, t.selectionEnd)") == "secret"
    assert other.value("t.value") == ""
    assert other.refused == ["clipboard (paste) was refused: it would leave the sandbox"]


def test_a_storm_of_alerts_is_broken_off(page):
    with pytest.raises(PageLimitError, match="more than 20 dialogs"):
        page.run("while (true) alert(1)")
    page.open("/file")
    assert page.title == "file"


def test_a_storm_of_popups_is_held_back(page):
    page.run("for (let i = 0; i < 30; i++) open('/file')")
    assert len(page.session.tabs) == page.session.options.limits.tabs
    page.open("/file")
    page.wait(100)
    assert page.title == "file"


def test_a_page_cannot_tell_the_report_from_what_it_knows(page):
    hidden = page.value(
        "[...Object.getOwnPropertyNames(window), ...Object.getOwnPropertySymbols(window)]"
        ".map(String).filter(name => /sandboxgym/i.test(name))"
    )
    assert hidden == []


def test_a_page_may_break_what_it_likes_of_its_own(page):
    page.run(
        """Date.now = Math.random = performance.now = () => { throw 1 }
        JSON.stringify = Array.prototype.push = EventTarget.prototype.dispatchEvent = null
        window.setTimeout = window.requestAnimationFrame = document.querySelector = null
        Object.defineProperty = Object.getOwnPropertyDescriptor = null"""
    )
    page.wait(100)
    page.run("try { new RTCPeerConnection() } catch (e) { document.title = e.name }")
    assert page.title == "NotAllowedError"
    page.open("/file")
    assert page.title == "file"


def test_halves_of_characters_end_no_reading(drive):
    page = drive(
        {"/": "<script>document.title = 'half \\ud800'; localStorage.half = '\\udc00'</script>"}
    )
    page.open()
    assert page.title == "half \ufffd"
    page.open()
    assert page.value("localStorage.half.charCodeAt(0)") == 0xDC00
