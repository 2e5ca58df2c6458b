"""What a page in the browser costs: time to open, time to act, memory of many.

    python -m benchmarks.browser_contexts --out benchmarks/results/browser_contexts.json

Memory is the proportional set size of all the browser's processes: what is shared counts once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.browser import chromium, loop
from sandboxgym.sandboxes.browser.options import Options
from sandboxgym.sandboxes.browser.session import Session
from sandboxgym.sandboxes.browser.sites import wsgi
from sandboxgym.sandboxes.browser.tab import Tab

PAGE = b"""<!doctype html><title>shop</title><link rel=stylesheet href=/style.css>
<h1>Shop</h1><form action=/><input name=q><button>Search</button></form>
<ul>""" + b"".join(
    b"<li><a href=/item/%d>Item %d</a> <button>Buy</button></li>" % (n, n) for n in range(50)
)


def make_app() -> Any:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        style = environ["PATH_INFO"].endswith(".css")
        start_response("200 OK", [("Content-Type", "text/css" if style else "text/html")])
        return [b"li { color: #333; margin: 4px }" if style else PAGE]

    return app


def memory_mb(group: int) -> float:
    """Of all processes of a group, in megabytes."""
    total = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) != group:
                continue
            rollup = (folder / "smaps_rollup").read_text()
        except OSError:  # it ended meanwhile
            continue
        total += next(int(line.split()[1]) for line in rollup.splitlines() if "Pss:" in line)
    return total / 1024


class Times:
    """Milliseconds of each kind of thing."""

    def __init__(self) -> None:
        self.all: dict[str, list[float]] = {}

    async def of(self, name: str, doing: Any) -> Any:
        """Wait for something, and note how long that took."""
        begun = time.perf_counter()
        result = await doing
        self.all.setdefault(name, []).append((time.perf_counter() - begun) * 1000)
        return result

    def summary(self) -> dict[str, dict[str, float]]:
        """Of each kind of thing."""
        return {
            name: {
                "median": round(statistics.median(values), 2),
                "best": round(min(values), 2),
                "worst": round(max(values), 2),
                "n": len(values),
            }
            for name, values in self.all.items()
        }


async def nothing() -> None:
    pass


async def click(tab: Tab, x: float, y: float) -> None:
    buttons = {"mouseMoved": "none", "mousePressed": "left", "mouseReleased": "left"}
    for kind, button in buttons.items():
        await tab.mouse(kind, x, y, button=button, clickCount=1)


async def episodes(number: int, times: Times) -> None:
    """Play short episodes one after the other."""
    for _ in range(number):
        session = await times.of("start, warm", Session.start(wsgi(make_app)(), Options()))
        await times.of("open", session.open("/"))
        tab = session.active

        for _ in range(5):
            await times.of("step: nothing", session.perform(None, nothing))
            await times.of(
                "step: click on a field", session.perform(None, partial(click, tab, 60, 75))
            )
        await times.of("step: click on a link", session.perform(None, partial(click, tab, 60, 120)))
        assert session.active.url.startswith("https://site.test/item"), session.active.url
        await times.of("screenshot", session.screenshot())
        await times.of("close", session.close())
        await asyncio.sleep(0.2)  # an agent thinks; the next context is made meanwhile


async def measure(contexts: int, number: int) -> dict[str, Any]:
    """All of it."""
    begun = time.perf_counter()
    browser = await chromium.shared()
    launched = (time.perf_counter() - begun) * 1000
    times = Times()
    await episodes(number, times)
    alone = memory_mb(browser.pid)
    sessions = []
    for _ in range(contexts):
        sessions.append(await Session.start(wsgi(make_app)(), Options()))
        await sessions[-1].open("/")
    many = memory_mb(browser.pid)
    for session in sessions:
        await session.close()
    return {
        "browser": browser.user_agent,
        "launch_ms": round(launched, 1),
        "ms": times.summary(),
        "contexts": contexts,
        "mb_of_browser": round(alone, 1),
        "mb_per_context": round((many - alone) / contexts, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contexts", type=int, default=32)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    arguments = parser.parse_args()
    result = loop.run(measure(arguments.contexts, arguments.episodes))
    loop.run(chromium.close())
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
