"""What an action causes has happened when it returns, whenever the page gets round to it."""

from __future__ import annotations

import contextlib
import itertools
import time
from dataclasses import replace

import pytest

from sandboxgym.sandboxes.browser.errors import PageHungError, SiteError
from sandboxgym.sandboxes.browser.settle import frame_time, nearest_frame, next_frame
from tests.sandboxes.browser.helpers import hang, html, redirect


@pytest.mark.parametrize("frame_ms", [1.0, 16.67, 20.0, 33.3, 1000.0])
def test_frames_follow_each_other_and_none_is_left_out(frame_ms):
    now = 0.0
    for number in itertools.count(1):
        following = next_frame(now, frame_ms)
        assert following == frame_time(number, frame_ms)
        assert following - now == pytest.approx(frame_ms, abs=0.9)
        assert nearest_frame(following + 0.3, frame_ms) >= following or frame_ms == 1.0
        now = following
        if number == 1200:
            break


def test_a_frame_is_due_together_with_few_round_timers():
    times = [frame_time(number, 20.0) for number in range(400)]
    for early, late in itertools.combinations(times, 2):
        together = abs((late - early) - round(late - early)) < 5e-4
        assert not together or round(late - early) % 180 == 0


@pytest.mark.parametrize("frame_ms", [1.0, 16.67, 20.0, 33.3, 1000.0])
def test_frames_are_due_at_the_steps_in_which_pages_are_told_time(frame_ms):
    for number in range(400):
        time_of_it = frame_time(number, frame_ms)
        assert time_of_it == round(time_of_it, 1)


def slow(_request):
    time.sleep(0.3)
    return html("<title>slow</title><script src=/slow.js></script>")


def test_a_navigation_is_waited_for_however_it_begins(drive):
    page = drive(
        {
            "/": "<a id=a href=/slow>a</a><form id=f action=/slow></form>",
            "/slow": slow,
            "/slow.js": lambda r: (time.sleep(0.3), html("document.title += ' and done'"))[1],
        }
    )
    for begin in (
        "a.click()",
        "f.submit()",
        "location = '/slow'",
        "setTimeout(() => location.assign('/slow'), 90)",
        "requestAnimationFrame(() => a.click())",
        "Promise.resolve().then(() => location.replace('/slow'))",
        "fetch('/').then(() => a.click())",
    ):
        page.open()
        page.run(begin)
        assert page.title == "slow and done", begin


def test_a_chain_of_navigations_is_followed_to_its_end(drive):
    page = drive(
        {
            "/": "<script>location = '/one'</script>",
            "/one": redirect("/two"),
            "/two": "<meta http-equiv=refresh content='0;url=/three'>",
            "/three": "<script>setTimeout(() => location = '/end', 10)</script>",
            "/end": "<title>end",
        }
    )
    page.open()
    assert page.title == "end"


def test_what_a_page_fetches_has_arrived(drive):
    page = drive(
        {
            "/": "<script>(async () => { window.got = []; for (const n of [1, 2, 3]) "
            "got.push(await (await fetch('/slow?' + n)).text()) })()</script>",
            "/slow": lambda request: (time.sleep(0.1), html(request.url[-1]))[1],
        }
    )
    page.open()
    assert page.value("got") == ["1", "2", "3"]


def test_frames_and_their_parts_are_waited_for(drive):
    page = drive(
        {
            "/": "<iframe src=/in></iframe>",
            "/in": "<iframe src=/slow></iframe>",
            "/slow": slow,
            "/slow.js": "document.title = 'deep'",
        }
    )
    page.open()
    assert page.value("frames[0].frames[0].document.title") == "deep"


def test_a_page_may_take_its_time_to_load_but_not_for_ever(drive):
    page = drive(
        {
            "/": "<script>document.write('<script src=/a.js><' + '/script>')</script><p>x",
            "/a.js": html("setTimeout(() => window.late = performance.now(), 5000)"),
        },
    )
    page.open()
    assert page.session.now < 500
    page.wait(5000)
    assert page.value("late") == pytest.approx(5000, abs=25)


@contextlib.contextmanager
def impatience(page):
    """Only what hangs is to run out of time, and not what is slow on a busy machine."""
    patient = page.session.options
    page.session.options = replace(patient, wall_s=1)
    yield
    page.session.options = patient


@pytest.mark.parametrize(
    "script",
    [
        "while (true) ;",
        "setTimeout(() => { while (true) ; })",
        "setTimeout(function again() { queueMicrotask(again) })",
        "(w = new Worker(URL.createObjectURL(new Blob(['onmessage = () => { while (true) ; }']))))"
        ".postMessage(1)",
        *(
            pytest.param(script, marks=pytest.mark.slow)
            for script in (
                "requestAnimationFrame(() => { while (true) ; })",
                "document.body.innerHTML = '<iframe></iframe>';"
                " frames[0].setTimeout('while (true) ;')",
                "new Worker(URL.createObjectURL(new Blob(['while (true) ;'])))",
            )
        ),
    ],
)
def test_a_page_that_hangs_is_replaced(drive, script):
    page = drive({"/": "<title>home</title><body>"})
    page.open()
    with impatience(page), pytest.raises(PageHungError, match="did not come to rest within 1 s"):
        page.run(script)
    assert page.url == "about:blank"
    page.open()
    assert page.title == "home"
    assert page.value("Date.now()") == int(page.session.options.epoch_ms + page.session.now)


def test_a_site_that_does_not_answer_is_named(drive):
    page = drive({"/": "home", "/never": hang})
    page.open()
    with (
        impatience(page),
        pytest.raises(SiteError, match=r"did not answer GET .*/never within 1 s"),
    ):
        page.open("/never")
    assert page.url == "about:blank"
