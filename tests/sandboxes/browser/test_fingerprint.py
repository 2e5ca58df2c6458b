"""A difference that only a look at the page's inside shows is in the fingerprint."""

import pytest

from sandboxgym.sandboxes.browser import loop
from sandboxgym.sandboxes.browser.env import BrowserEnv
from sandboxgym.sandboxes.browser.fingerprint import difference
from tests.sandboxes.browser.site import TestSite

CHANGES = {
    "/form": {
        "fields": "document.querySelector('input').value = 'x'",
        "markup": "document.body.append(document.createElement('i'))",
        "focus": "document.querySelector('input').focus()",
        "local_storage": "localStorage.a = 1",
        "session_storage": "sessionStorage.a = 1",
        "cookies": "document.cookie = 'a=1'",
        "name": "window.name = 'n'",
        "selection": "getSelection().selectAllChildren(document.querySelector('h1'))",
        "state": "history.replaceState({a: 1}, '')",
    },
    "/scroll": {
        "scroll": "document.getElementById('inner').scrollTop = 40",
    },
    "/canvas": {
        "canvases": "document.querySelector('canvas').getContext('2d').fillRect(9, 9, 1, 1)",
    },
    "/timers": {
        "animations": "document.getAnimations()[0].currentTime += 500",
    },
}


@pytest.fixture(scope="module")
def env(browser):
    made = BrowserEnv(TestSite)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("start", "part"), [(start, part) for start, parts in CHANGES.items() for part in parts]
)
def test_sees(env, start, part):
    env.reset(seed=1, options={"start": start})
    episode = env._episode
    before = loop.run(episode.fingerprint())
    assert difference(before, loop.run(episode.fingerprint())) is None
    changing = {"expression": CHANGES[start][part]}
    loop.run(episode.session.active.cdp.send("Runtime.evaluate", **changing))
    after = loop.run(episode.fingerprint())
    found = difference(before, after)
    assert found is not None
    assert before["tabs"][0]["frames"][0][part] != after["tabs"][0]["frames"][0][part]


def test_sees_what_is_pressed(env):
    env.reset(seed=1, options={"start": "/form"})
    episode = env._episode
    before = loop.run(episode.fingerprint())
    loop.run(episode.session.active.mouse("mousePressed", 30, 30, button="left", clickCount=1))
    after = loop.run(episode.fingerprint())
    assert before["tabs"][0]["frames"][0]["pressed"] == ""
    assert after["tabs"][0]["frames"][0]["pressed"] != ""
