"""The same page, driven in the same way, is the same: in every session, at any load."""

from __future__ import annotations

import json

import pytest

from sandboxgym.sandboxes.browser.options import Options
from sandboxgym.sandboxes.browser.sites import Response
from tests.sandboxes.browser.helpers import script

EPOCH = 1_735_732_800_000
LOG = "<script>window.log = []; const say = (...what) => log.push(what)</script>"


def log(drive, body, *, seed=0, ms=300, pages=None, action=None):
    """What a page logged: after its load, after a while, and after an action."""
    page = drive({"/": LOG + body, **(pages or {})}, options=Options(seed=seed))
    page.open()
    page.wait(ms)
    if action:
        page.run(action)
    return page.value("log")


def twice(drive, body, **how):
    one, other = (log(drive, body, **how) for _ in range(2))
    assert json.dumps(one) == json.dumps(other)
    assert one
    return one


def test_dates_and_clocks_are_virtual(drive):
    said = twice(
        drive,
        """<script>
        say(Date.now(), performance.now(), performance.timeOrigin, new Date().toISOString())
        setTimeout(() => say(Date.now(), performance.now()), 234)
        </script>""",
        ms=200,
    )
    assert said == [
        [EPOCH, 0, EPOCH, "2025-01-01T12:00:00.000Z"],
        [EPOCH + 234, 234],
    ]


def test_an_hour_passes_at_once(drive):
    ticks = "<script>setInterval(() => say(performance.now()), 600_000)</script>"
    page = drive({"/": LOG + ticks}, options=Options(frame_ms=60_000, action_ms=3_600_000))
    page.open()
    assert page.value("log") == [[600_000 * n] for n in range(1, 7)]


def test_timers_keep_their_order_under_work(drive):
    said = twice(
        drive,
        """<script>
        for (const ms of [30, 10, 20, 10]) setTimeout(() => {
            for (let i = 0; i < 3e5; i++) Math.sqrt(i)
            say(ms, performance.now())
        }, ms)
        setInterval(() => say('every', performance.now()), 15)
        </script>""",
        ms=0,
    )
    assert said[:6] == [[10, 10], [10, 10], ["every", 15], [20, 20], [30, 30], ["every", 30]]


def test_animation_frames_come_at_fixed_times(drive):
    said = twice(
        drive,
        """<script>
        requestAnimationFrame(function frame(t) {
            say(t, performance.now()); requestAnimationFrame(frame)
        })</script>""",
        ms=40,
    )
    assert said == [[at, at] for at in range(20, 160, 20)]  # and a fraction, which is cut off


def test_style_animations_and_transitions_follow(drive):
    body = """<style>@keyframes go { from { left: 0 } to { left: 1000px } }
        #a { position: absolute; animation: go 1s linear infinite }
        #b { transition: width 1s linear; width: 0 }</style><div id=a>a</div><div id=b>b</div>
        <script>
        setTimeout(() => b.style.width = '1000px', 50)
        setInterval(() => say(performance.now(), getComputedStyle(a).left,
            getComputedStyle(b).width, a.getAnimations()[0].currentTime,
            document.timeline.currentTime), 40)
        </script>"""
    said = twice(drive, body, ms=200)
    left = [float(each[1].removesuffix("px")) for each in said]
    width = [float(each[2].removesuffix("px")) for each in said]
    assert left == sorted(left)
    assert left[-1] > 100
    assert width == sorted(width)
    assert width[-1] > 100


def test_pictures_are_the_same(drive):
    body = """<style>@keyframes turn { to { rotate: 360deg } }
        i { display: block; width: 90px; height: 90px; animation: turn 3s infinite;
            background: linear-gradient(red, blue) }</style><i></i>
        <p style="font: italic 21px serif">Text, with <b>ligatures</b> ffi.</p>
        <canvas id=c></canvas>
        <script>const pen = c.getContext('2d')
        pen.font = '20px sans-serif'; pen.fillText(Math.random(), 5, 50)</script>"""
    pictures = []
    for _ in range(2):
        page = drive({"/": body})
        page.open()
        page.wait(240)
        pictures.append(page.screenshot())
    assert pictures[0] == pictures[1]
    page.wait(240)
    assert page.screenshot() != pictures[0]


def test_a_picture_changes_nothing(drive):
    page = drive(
        {"/": "<script>n = 0; (function f() { n++; requestAnimationFrame(f) })()</script>"}
    )
    page.open()
    before = page.value("n")
    page.screenshot()
    page.screenshot()
    assert page.value("n") == before


RANDOM = "Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(3))]"


def test_randomness_is_the_seeds(drive):
    body = f"<script>say({RANDOM}); setTimeout(() => say({RANDOM}), 50)</script>"
    first = twice(drive, body, seed=3)
    assert first != log(drive, body, seed=4)
    assert len({str(value) for said in first for value in said}) == 6


def test_each_frame_and_document_has_a_stream_of_its_own(drive):
    page = drive(
        {
            "/": "<iframe srcdoc='<script>r = Math.random()</script>'></iframe>" * 2
            + "<iframe src=/inner></iframe><script>r = Math.random()</script>",
            "/inner": "<script>r = Math.random()</script>",
        }
    )
    drawn = []
    for _ in range(2):
        page.open()
        drawn += page.value("[r, ...Array.from(frames, frame => frame.r)]")
    assert len(set(drawn)) == 8


def test_draws_are_evenly_spread(drive):
    page = drive({"/": "<script>bins = Array(10).fill(0)</script>"})
    page.open()
    page.run("for (let i = 0; i < 1e5; i++) bins[Math.floor(Math.random() * 10)]++")
    assert all(abs(count - 10_000) < 500 for count in page.value("bins"))


def test_input_has_virtual_time_stamps(drive):
    body = """<button style='position:absolute;left:0;top:0;width:99px;height:99px'>b</button>
        <script>for (const kind of ['pointermove', 'mousedown', 'click'])
            addEventListener(kind, e => say(kind, e.timeStamp, performance.now(), e.isTrusted))
        </script>"""
    page = drive({"/": LOG + body})
    page.open()
    page.click(20, 20)
    assert page.value("log")[-3:] == [
        [kind, 100, 100, True] for kind in ("pointermove", "mousedown", "click")
    ]


WORKER = """
    postMessage(['begun', Date.now(), performance.now(), Math.random(), crypto.randomUUID()])
    fetch('/data').then(r => r.text()).then(text => postMessage(['data', text, Date.now()]))
    let n = 0
    const ticking = setInterval(() => {
        postMessage(['tick', ++n, performance.now()])
        if (n == 5) { clearInterval(ticking); setTimeout(() => postMessage('late'), 100) }
    }, 15)
    onmessage = e => postMessage(['echo', e.data, performance.now()])
"""


@pytest.mark.parametrize("made", ["'/worker.js'", "URL.createObjectURL(new Blob([source]))"])
def test_workers_keep_in_step(drive, made):
    source = WORKER.replace("'/data'", "'https://site.test/data'")
    body = f"""<script>const source = {json.dumps(source)}
        const worker = new Worker({made})
        worker.onmessage = e => say(performance.now(), e.data)
        setTimeout(() => worker.postMessage({{deep: [1, new Date(5)]}}), 33)</script>"""
    pages = {"/worker.js": script(WORKER), "/data": "served"}
    said = twice(drive, body, pages=pages, ms=300)
    assert [each[1][0] for each in said].count("tick") == 5
    assert any(each[1][0] == "data" and each[1][1] == "served" for each in said)
    assert any(each[1][0] == "echo" and each[1][1]["deep"][0] == 1 for each in said)
    assert said[-1][1] == "late"


def test_traits_of_the_machine_are_hidden(drive):
    body = """<script>
        const n = navigator
        say(n.hardwareConcurrency, n.deviceMemory, n.language, n.languages, n.userAgent)
        say(screen.width, screen.height, innerWidth, innerHeight, devicePixelRatio)
        say(Intl.DateTimeFormat().resolvedOptions().timeZone, new Date(0).getHours())
        say(matchMedia('(prefers-reduced-motion)').matches, (1234.5).toLocaleString())
        say(performance.memory.usedJSHeapSize, performance.getEntries().length)
        say(performance.timing.navigationStart, performance.timing.loadEventEnd)
        </script>"""
    said = twice(drive, body)
    assert said[0][:4] == [4, 8, "en-US", ["en-US"]]
    assert "Headless" not in said[0][4]
    assert said[1:] == [
        [1280, 720, 1280, 720, 1],
        ["UTC", 0],
        [True, "1,234.5"],
        [2**23, 0],
        [EPOCH, 0],
    ]


def test_marks_and_measures_are_virtual(drive):
    said = twice(
        drive,
        """<script>
        new PerformanceObserver(list => say('seen', list.getEntries().length))
            .observe({ entryTypes: ['mark', 'longtask'] })
        setTimeout(() => { performance.mark('m'); performance.measure('d', 'm')
            const [mark, measure] = performance.getEntries()
            say(mark.startTime, measure.duration) }, 70)
        </script>""",
    )
    assert [70, 0] in said
    assert ["seen", 1] in said


def test_observers_and_idle_callbacks_are_the_same(drive):
    twice(
        drive,
        """<div id=d style="height: 3000px"></div><p id=p>far down</p><script>
        new IntersectionObserver(seen => say('seen', seen[0].isIntersecting)).observe(p)
        new ResizeObserver(() => say('resized', performance.now())).observe(d)
        new MutationObserver(() => say('mutated')).observe(d, {attributes: true})
        requestIdleCallback(() => say('idle'))
        setTimeout(() => { d.style.height = '10px' }, 60)
        </script>""",
    )


def test_idle_moments_are_virtual(drive):
    said = twice(
        drive,
        """<script>
        requestIdleCallback(function (deadline) {
            say(performance.now(), deadline instanceof IdleDeadline, deadline.didTimeout)
            let portions = 0
            while (deadline.timeRemaining() > 0) portions++
            say(portions)
            requestIdleCallback(() => say('again', performance.now()), { timeout: 5000 })
        })
        cancelIdleCallback(requestIdleCallback(() => say('cancelled')))
        try { requestIdleCallback(7) } catch (error) { say(error.name) }
        </script>""",
    )
    assert said == [["TypeError"], [10, True, False], [50], ["again", 20]]


LOADING = """<script>
    const when = what => say(what, performance.now(), Date.now())
    requestAnimationFrame(() => { when('frame'); requestAnimationFrame(() => when('frame 2')) })
    setTimeout(() => when('timer'))
    setInterval(() => when('interval'), 7)
    document.addEventListener('readystatechange', () => when(document.readyState))
    addEventListener('load', () => {
        when('load')
        setTimeout(() => when('after load'))
        fetch('/data').then(answer => answer.text()).then(text => when('fetched ' + text))
    })</script>
    <style>@keyframes go { from { left: 0 } to { left: 1000px } }
        #box { position: absolute; animation: go 1s linear infinite }</style>
    <link rel=stylesheet href=/style><script src=/writes></script><div id=box>box</div>
    <script>setInterval(() => say(getComputedStyle(box).left), 13)</script>
    <img src=/image onload="when('image')"><script src=/deferred defer></script>
    <iframe srcdoc="<script>parent.when('frame ' + performance.now())</script>"></iframe>"""
LOADED = {
    "/style": Response(200, (("Content-Type", "text/css"),), b"p { color: red }"),
    "/writes": script("when('writes'); document.write('<script src=/written></' + 'script>')"),
    "/written": script("when('written')"),
    "/deferred": script("when('deferred')"),
    "/image": Response(
        200, (("Content-Type", "image/svg+xml"),), b"<svg xmlns='http://www.w3.org/2000/svg'/>"
    ),
    "/data": "data",
}


def test_loading_takes_no_time_of_the_page(drive):
    said = log(drive, LOADING, pages=LOADED)
    for _ in range(3):
        assert log(drive, LOADING, pages=LOADED) == said
    assert {each[1] for each in said[: said.index(["load", 0, EPOCH]) + 1]} == {0}
    assert ["fetched data", 0, EPOCH] in said
    times = [each[1] for each in said if each[0] == "interval"]
    assert times == [10, *range(14, times[-1] + 1, 7)]
    assert [each[1] for each in said if each[0] in ("frame", "frame 2")] == [20, 40]


def test_what_caches_answer_is_waited_for(drive):
    said = twice(
        drive,
        """<script>(async () => {
            const cache = await caches.open('c')
            await cache.put('/x', new Response('kept'))
            say(await (await cache.match('/x')).text(), performance.now())
        })()</script>""",
        ms=0,
    )
    assert said == [["kept", 0]]
