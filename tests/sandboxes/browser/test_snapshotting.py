"""A fork of the browser, for everything that a page may hold: each row is played on the test site,
captured, played on; then restored in another environment, and played on again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sandboxgym as sg
from sandboxgym.core import codec
from sandboxgym.core.errors import RestoreMismatchError, SnapshotCorruptError, UncapturedStateError
from sandboxgym.sandboxes.browser import loop
from sandboxgym.sandboxes.browser.env import BrowserEnv
from sandboxgym.sandboxes.browser.options import Options
from sandboxgym.sandboxes.browser.understudy import Understudy
from tests.sandboxes.browser.playing import play
from tests.sandboxes.browser.site import TestSite

ROOT = Path(__file__).parents[3]

# name -> (first page, what is done before the snapshot, what is done after it)
ITEMS: dict[str, tuple[str, list[str], list[str]]] = {
    "redirects": ("/", ["click link 'redirect'"], ["goto('/storage')"]),
    "page that was posted": (
        "/form",
        ["fill textbox 'word' 'milk'", "click button 'send'", "fill textbox 'draft' 'half'"],
        ["click button 'more'", "click link 'another'"],
    ),
    "post and redirect": (
        "/form",
        ["fill textbox 'word' 'milk'", "click button 'send and go'"],
        ["click button 'more'"],
    ),
    "document with earlier documents": (
        "/history",
        ["click link 'further'", "fill textbox 'draft' 'half'"],
        ["go_back()", "go_forward()", "click button 'back by script'"],
    ),
    "document that was gone back to": (
        "/history",
        ["click link 'further'", "go_back()", "fill textbox 'draft' 'half'"],
        ["go_forward()", "go_back()"],
    ),
    "fragments": (
        "/history",
        ["click link 'to the part'"],
        ["go_back()", "go_forward()"],
    ),
    "popup with its opener": (
        "/tabs",
        ["click button 'open a popup'", "click button 'answer the opener'", "tab_focus(0)"],
        ["click button 'tell the popup'", "tab_focus(1)", "click button 'close this'"],
    ),
    "tabs": (
        "/tabs",
        ["click link 'link in a new tab'", "new_tab()", "goto('/form')"],
        ["tab_focus(1)", "tab_close()", "tab_focus(0)"],
    ),
    "iframes": (
        "/frames",
        [
            "fill textbox 'draft in a frame' 'half'",
            "click button '0'",
            "click button 'inline'",
            "click button 'sealed'",
        ],
        ["click button '1'", "click button 'tell the parent'", "click link 'navigate the frame'"],
    ),
    "iframe that went elsewhere": (
        "/frames",
        ["click link 'navigate the frame'", "click button '0'"],
        ["click button '1'", "click button 'tell the parent'"],
    ),
    "dialogs": (
        "/dialogs",
        ["click button 'alert'", "click button 'confirm'", "click button 'prompt'"],
        ["click button 'open a dialog element'", "click button 'yes'"],
    ),
    "modal": ("/dialogs", ["click button 'open a dialog element'"], ["click button 'yes'"]),
    "downloads": (
        "/download",
        ["click link 'a file that is served as an attachment'"],
        ["click link 'a link with download'", "click button 'a file made by the page'"],
    ),
    "file fields": (
        "/files",
        ["upload button 'file'"],
        ["click button 'send'"],
    ),
    "contenteditable": (
        "/editable",
        ["click textbox 'note'", "keyboard_type('more ')", "fill textbox 'plain' 'other'"],
        ["fill textbox 'note' 'all new'", "keyboard_press('Backspace')"],
    ),
    "focus": (
        "/focus",
        ["click textbox 'two'", "keyboard_press('Tab')"],
        ["keyboard_press('a')", "keyboard_press('Shift+Tab')"],
    ),
    "scrolling": (
        "/scroll",
        ["scroll(0, 250)", "hover button 'at the bottom inside'"],
        ["scroll(0, -100)", "keyboard_press('End')"],
    ),
    "select": (
        "/select",
        ["select combobox 'one' 'g'", "check checkbox 'agreed'", "click radio 'large'"],
        ["select combobox 'one' 'blue'", "click DisclosureTriangle 'more'"],
    ),
    "canvas": (
        "/canvas",
        ["click button 'a dot somewhere'", "mouse_click(150, 200)"],
        ["click button 'a dot somewhere'", "click button 'clear'"],
    ),
    "web components": (
        "/components",
        ["click button '0'", "click button '0'", "fill textbox 'draft in a shadow' 'half'"],
        ["click button '1'", "click button 'slotted button'"],
    ),
    "IndexedDB, written to by this document": (
        "/indexeddb",
        ["click button 'put'", "click button 'put'", "click button 'put'"],
        ["click button 'put'", "goto('/indexeddb')"],
    ),
    "IndexedDB, with Map and Set, found by this document": (
        "/indexeddb",
        [*["click button 'put'"] * 6, "goto('/indexeddb')", "click button 'put'"],
        ["click button 'put'", "goto('/indexeddb')", "click button 'drop the database'"],
    ),
    "storage": (
        "/storage",
        [
            *("click button 'local'", "click button 'session'", "click button 'cookie'"),
            *("click link 'log in'", "click link 'storage'", "click button 'local'"),
        ],
        ["click link 'again'", "click button 'wipe'", "click link 'log out'"],
    ),
    "single page with pushState": (
        "/spa",
        [
            *("click link 'notes'", "fill textbox 'note' 'second'", "click button 'add'"),
            "click link 'about'",
        ],
        ["go_back()", "click button 'add'"],
    ),
    "timers and animations": (
        "/timers",
        ["click button 'start'", "noop(230)", "click button 'later'"],
        ["noop(330)", "click button 'stop'"],
    ),
    "fetch and XHR": (
        "/fetch",
        ["click button 'fetch'", "click button 'XHR'", "click button 'two at once'"],
        ["click button 'fetch a post'", "click button 'beacon'", "click button 'missing'"],
    ),
    "WebSocket": ("/websocket", ["click button 'open'"], ["click button 'open'"]),
    "chance and time": (
        "/chance",
        ["click button 'roll'", "click button 'token'", "noop(77)"],
        ["click button 'roll'", "click button 'token'", "click button 'clock'"],
    ),
    "workers": (
        "/workers",
        ["click button 'worker'", "click button 'service worker'"],
        ["click button 'worker'", "click button 'broadcast'"],
    ),
    "drawing": (
        "/drawing",
        ["click button 'draw'", "click button 'draw'"],
        ["click button 'draw'"],
    ),
    "cache storage": (
        "/workers",
        ["click button 'cache'", "goto('/form')", "goto('/workers')", "click button 'kept'"],
        ["click button 'kept'", "click button 'cache'"],
    ),
    "dragging": (
        "/drag",
        ["mouse_drag_and_drop(30, 250, 150, 260)"],
        ["mouse_down(40, 240, 'left')", "mouse_up(90, 240, 'left')"],
    ),
    "keys": (
        "/keys",
        ["click textbox 'field'", "keyboard_type('aB1')", "keyboard_down('Shift')"],
        ["keyboard_press('a')", "keyboard_up('Shift')", "keyboard_press('Control+a')"],
    ),
    "outside": (
        "/outside",
        ["click button 'fetch another origin'"],
        ["click link 'another origin'"],
    ),
    "many parts": ("/slow-parts", ["noop(20)"], ["goto('/slow-parts')"]),
}


@pytest.fixture(scope="module")
def envs(browser: None) -> Iterator[tuple[BrowserEnv, BrowserEnv]]:
    pair = BrowserEnv(TestSite), BrowserEnv(TestSite)
    yield pair
    for env in pair:
        env.close()


@pytest.mark.parametrize("item", ITEMS)
def test_restored_exactly(envs, item):
    env, twin = envs
    start, before, after = ITEMS[item]
    env.reset(seed=3, options={"start": start})
    shown = play(env, before)
    moment = env.snapshot()
    picture = env.screenshot()
    ahead = [play(env, [action]) for action in after]

    told_wrongly = twin.metrics.get("unfaithful_restores", 0)
    obs, _ = twin.restore(moment, verify=True)
    assert twin.metrics.get("unfaithful_restores", 0) == told_wrongly, twin.unfaithful
    assert obs == shown
    assert twin.screenshot() == picture
    assert [play(twin, [action]) for action in after] == ahead


@pytest.mark.parametrize(
    ("start", "script"),
    [
        ("/timers", ["click button 'start'", "noop(110)", "click button 'later'", "noop(40)"]),
        ("/spa", ["click link 'notes'", "click link 'about'", "go_back()", "go_forward()"]),
        (
            "/chance",  # whose buttons write into nodes that are selected
            ["keyboard_press('Control+a')", *["click button 'roll'", "click button 'token'"] * 2],
        ),
    ],
)
def test_snapshot_changes_nothing(envs, start, script):
    env, twin = envs
    for each in envs:
        each.reset(seed=1, options={"start": start})
    for action in script:
        env.snapshot()
        assert play(env, [action]) == play(twin, [action])
    assert env.screenshot() == twin.screenshot()
    assert env.snapshot().digest == twin.snapshot().digest


def test_a_moment_that_is_restored_again_and_again_is_told_ahead(envs):
    env, _ = envs
    env.reset(seed=1, options={"start": "/canvas"})
    shown = play(env, ["click button 'a dot somewhere'"])
    moment, picture = env.snapshot(), env.screenshot()
    ahead = play(env, ["click button 'a dot somewhere'"])
    used = env._understudy.used
    for _ in range(4):
        assert env.restore(moment)[0] == shown
        assert env.screenshot() == picture
        assert play(env, ["click button 'a dot somewhere'"]) == ahead
        if env._understudy.at_work:
            loop.run(_rested(env._understudy), 60)
    assert env._understudy.used == used + 2
    env.reset(seed=2)
    other = env.snapshot()
    env.restore(other)
    assert not env._understudy.at_work


async def _rested(understudy: Understudy) -> None:
    assert understudy._telling is not None
    await asyncio.wait({understudy._telling})


def test_a_page_knows_where_the_mouse_was_before_it(envs):
    env, twin = envs
    env.reset(seed=1, options={"start": "/storage"})
    play(env, ["click link 'again'"])
    frame = env.snapshot().state["moment"]["fingerprint"]["tabs"][0]["frames"][0]
    assert frame["hover"] != ""  # the link of the new document, which moved under the mouse
    told_wrongly = twin.metrics.get("unfaithful_restores", 0)
    twin.restore(env.snapshot())
    assert twin.metrics.get("unfaithful_restores", 0) == told_wrongly, twin.unfaithful


def test_a_link_with_download_begins_no_story(envs):
    env, twin = envs
    env.reset(seed=1, options={"start": "/download"})
    play(env, ["click link 'a link with download'"])
    moment = env.snapshot()
    assert moment.held.moment.story.start.url.endswith("/download")
    told_wrongly = twin.metrics.get("unfaithful_restores", 0)
    twin.restore(moment)
    assert twin.metrics.get("unfaithful_restores", 0) == told_wrongly, twin.unfaithful


def test_eight_forks_go_eight_ways(envs):
    env, _ = envs
    env.reset(seed=1, options={"start": "/canvas"})
    play(env, ["click button 'a dot somewhere'"])
    forks = sg.fork(env, 8)
    try:
        pictures = set()
        for number, fork in enumerate(forks):
            play(fork, ["click button 'a dot somewhere'"] * number)
            pictures.add(fork.screenshot())
        assert len(pictures) == 8
        assert env.screenshot() == forks[0].screenshot()
    finally:
        for fork in forks:
            fork.close()


def test_storage_of_an_episode_is_gone_in_the_next(envs):
    env, _ = envs
    fresh, _ = env.reset(seed=1, options={"start": "/storage"})
    play(env, ["click button 'local'", "click button 'cookie'", "goto('/storage')"])
    again, _ = env.reset(seed=1, options={"start": "/storage"})
    assert again == fresh


def test_forks_share_no_storage_and_no_server(envs):
    env, twin = envs
    env.reset(seed=1, options={"start": "/storage"})
    twin.restore(env.snapshot())
    play(twin, ["click button 'local'", "click link 'log in'"])
    assert "local {}" in play(env, ["goto('/storage')"])["axtree"]
    assert "nobody" in play(env, ["goto('/account')"])["axtree"]


def test_snapshot_travels_to_another_process(envs, tmp_path):
    env, _ = envs
    env.reset(seed=5, options={"start": "/spa"})
    play(env, ["click link 'notes'", "fill textbox 'note' 'second'", "click button 'add'"])
    env.snapshot().save(tmp_path / "moment.snap")
    (tmp_path / "before.png").write_bytes(env.screenshot())
    there = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert there.returncode == 0, there.stderr
    assert there.stdout == play(env, ["click button 'add'"])["axtree"]
    assert (tmp_path / "after.png").read_bytes() == (tmp_path / "before.png").read_bytes()


_ELSEWHERE = """
import sys
from pathlib import Path
import sandboxgym as sg
from sandboxgym.sandboxes.browser.env import BrowserEnv
from tests.sandboxes.browser.playing import play
from tests.sandboxes.browser.site import TestSite

folder = Path(sys.argv[1])
env = BrowserEnv(TestSite)
env.restore(sg.Snapshot.load(folder / "moment.snap"))
assert "unfaithful_restores" not in env.metrics, env.unfaithful
(folder / "after.png").write_bytes(env.screenshot())
sys.stdout.write(play(env, ["click button 'add'"])["axtree"])
"""


def test_where_telling_goes_wrong_the_recipe_is_replayed(envs):
    env, twin = envs
    env.reset(seed=1, options={"start": "/chance"})
    shown = play(env, ["click button 'roll'"])
    moment = env.snapshot()
    held = moment.held
    false = {**held.moment.fingerprint, "hands": [1.0, 1.0, [], 0]}
    wrong = replace(moment, held=replace(held, moment=replace(held.moment, fingerprint=false)))
    before = twin.metrics.get("unfaithful_restores", 0)
    obs, _ = twin.restore(wrong)
    assert twin.metrics["unfaithful_restores"] == before + 1
    assert "hands" in twin.unfaithful
    assert obs == shown
    assert play(twin, ["click button 'roll'"]) == play(env, ["click button 'roll'"])


class Forgetful:
    """A site whose pages depend on what its state does not have."""

    served = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        Forgetful.served += 1
        start_response("200 OK", [("Content-Type", "text/html")])
        return [f"<title>x</title><p>served {Forgetful.served}</p>".encode()]


def test_site_without_hooks_replays_and_is_found_out(browser):
    env = BrowserEnv(Forgetful)
    try:
        env.reset(seed=1)
        assert env.fidelity.mechanism == "replay"
        moment = env.snapshot()
        with pytest.raises(RestoreMismatchError, match="served"):
            env.spawn().restore(moment)
    finally:
        env.close()


def test_page_that_was_broken_off_is_refused_by_name(browser):
    env = BrowserEnv(TestSite, browser=Options(wall_s=1.0))
    try:
        env.reset(seed=1, options={"start": "/hangs"})
        obs = play(env, ["click button 'hang'"])
        assert "did not come to rest" in obs["last_action_error"]
        with pytest.raises(UncapturedStateError, match=r"broken off.*did not come to rest"):
            env.snapshot()
        assert "Index" in play(env, ["goto('/')"])["axtree"]
        env.restore(env.snapshot())
    finally:
        env.close()


def test_foreign_bytes_are_refused(envs):
    env, _ = envs
    env.reset(seed=1)
    with pytest.raises(SnapshotCorruptError):
        env.unpack(b"\x00nonsense")


def _edited(env, edit):
    """A snapshot of the present moment, as if its bytes had been edited."""
    moment = env.snapshot()
    data = codec.decode(moment.held.pack())
    edit(data[0])
    return replace(moment, held=None, packed=codec.encode(data))


_FOREIGN = ["GET", "https://elsewhere.test/", b"", 200, [["Content-Type", "text/html"]], b"got you"]


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda m: m["start"].update(time=1e18), "1e[+]18"),
        (lambda m: m["start"].update(time=float("nan")), "nan"),
        (lambda m: m["fingerprint"].update(time=1e9), "1000000000.0 ms come after"),
        (lambda m: m["start"].update(history=["https://site.test/"] * 5000), "5000 entries"),
        (lambda m: m["start"].update(url=7), "Expected `str`, got `int`"),
        (lambda m: m["start"].update(pointer=[1.0]), "the mouse cannot be at"),
        (lambda m: m["exchanges"][0].__setitem__(3, 10**30), "was answered 1000"),
        (lambda m: m["bids"].append(3), "Expected `array`"),
    ],
)
def test_bytes_that_say_what_cannot_be_are_refused(envs, edit, named):
    env, _ = envs
    shown, _ = env.reset(seed=1, options={"start": "/form"})
    with pytest.raises(SnapshotCorruptError, match=named):
        env.restore(_edited(env, edit))
    assert env.restore(env.snapshot())[0] == shown


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda m: m["start"].update(url="file:///etc/passwd"), "there is only https://site.test"),
        (
            lambda m: m["start"].update(history=["about:blank", "https://elsewhere.test/"]),
            "elsewhere.test/ is not of",
        ),
        (
            lambda m: m["start"]["cookies"].append(
                {"name": "a", "value": "b", "domain": "elsewhere.test", "path": "/"}
            ),
            "cookies",
        ),
        (lambda m: m["exchanges"].append(_FOREIGN), "elsewhere.test"),
    ],
)
def test_bytes_that_lead_elsewhere_are_not_followed(envs, edit, named):
    env, _ = envs
    shown, _ = env.reset(seed=1, options={"start": "/form"})
    told_wrongly = env.metrics.get("unfaithful_restores", 0)
    assert env.restore(_edited(env, edit))[0] == shown  # by its recipe
    assert env.metrics["unfaithful_restores"] == told_wrongly + 1
    assert named in env.unfaithful
