"""How fast the report is with a large tree: first draw, panning, zooming and walking in Chromium.

    python -m benchmarks.report_page --out benchmarks/results/report_page.json

Writes a page about an invented run with a tree of 10,000 decisions, opens it in a headless Chromium
by Playwright (`pip install playwright`) and does what a reader does, again and again. Of each there
are the milliseconds that the page's main thread worked, in processor time, so that others on
the machine hardly matter: the means by kind of work, the longest, and how many took more than the
16.7 ms of a frame. With `--shots` it leaves pictures to look at.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from sandboxgym_learners.report import load_runs, write_report
from sandboxgym_learners.report.provenance import commit, machine
from tests.learners.run_fixtures import make_run, rollout_tree

STEPS = 120
FRAME_MS = 1000 / 60

DO = """
async ([kind, i]) => {
  const scroll = document.querySelector(".tree-scroll");
  const press = (key) => scroll.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const walk = ["ArrowDown", "ArrowRight", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowDown"];
  ({
    idle: () => {},
    pan: () => { scroll.scrollTop += 37; scroll.scrollLeft += i % 2 ? 11 : -11; },
    zoom: () => press(Math.floor(i / 6) % 2 ? "-" : "+"),
    walk: () => press(walk[i % walk.length]),
  })[kind]();
  for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
}
"""
"""One action, and the frame that shows it."""

READY = "() => document.querySelector('.tree canvas') && !document.querySelector('[aria-busy]')"
PRESS = """
(key) => document.querySelector(".tree-scroll")
  .dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }))
"""


def main() -> None:
    """Measure, and write the JSON."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--decisions", type=int, default=10_000)
    parser.add_argument("--browser", default=shutil.which("chromium-headless-shell"))
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    parser.add_argument("--shots", type=Path, help="leave pictures in this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), options.decisions, options.browser, options.shots)
    text = json.dumps(result, indent=2)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", "utf-8")


def measure(
    folder: Path, decisions: int, browser: str | None, shots: Path | None
) -> dict[str, Any]:
    """Everything about one page."""
    forks = max(1, decisions // 280)  # ten roots, 28 decisions of a fork in the mean
    tree = rollout_tree(random.Random(0), roots=10, forks=forks, length=60)
    run = make_run(folder / "run", "bpo", 0, updates=10, tree=tree)
    begin = time.process_time()
    page = write_report(load_runs([run]), folder / "page.html", command="benchmarks.report_page")
    written = time.process_time() - begin
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        try:
            return {
                "machine": {"is": machine(), "load": os.getloadavg()[0]},
                "commit": commit(),
                "chromium": chromium.version,
                "decisions": tree.env_steps(),
                "episodes": sum(1 for _ in tree.leaves()),
                "page_bytes": page.stat().st_size,
                "writing_cpu_s": round(written, 2),
                "screens": {
                    "1200x900": screen(chromium, page, shots, width=1200, height=900),
                    "390x844, three pixels a point": screen(
                        chromium, page, shots, width=390, height=844, sharpness=3
                    ),
                },
            }
        finally:
            chromium.close()


def screen(
    chromium: Any, page: Path, shots: Path | None, *, width: int, height: int, sharpness: int = 1
) -> dict[str, Any]:
    """Open the page at one size, and do everything in it."""
    context = chromium.new_context(
        viewport={"width": width, "height": height}, device_scale_factor=sharpness
    )
    tab = context.new_page()
    metrics = Metrics(context.new_cdp_session(tab))
    tab.goto(page.as_uri())
    tab.wait_for_function(READY)
    result: dict[str, Any] = {"first_draw": metrics.since_last()}
    tab.locator(".tree-scroll").scroll_into_view_if_needed()
    for kind in ("idle", "pan", "zoom", "walk"):
        result[kind] = repeated(tab, metrics, kind)
    tab.evaluate(PRESS, "0")
    if shots is not None:
        shots.mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=str(shots / f"all-{width}.png"))
    result["walk_with_all_in_view"] = repeated(tab, metrics, "walk")
    context.close()
    return result


def repeated(tab: Any, metrics: Metrics, kind: str) -> dict[str, float]:
    """Do one thing many times; milliseconds of the main thread for each."""
    metrics.since_last()
    worked = []
    for number in range(STEPS):
        tab.evaluate(DO, [kind, number])
        worked.append(metrics.since_last())
    whole = [one["all_work_ms"] for one in worked]
    return {
        **{name: round(statistics.fmean(one[name] for one in worked), 2) for name in worked[0]},
        "longest_ms": round(max(whole), 1),
        "longer_than_a_frame": sum(work > FRAME_MS for work in whole),
        "of": STEPS,
    }


class Metrics:
    """What the browser says of the work of a page's main thread, in milliseconds of processor."""

    NAMES = {
        "ScriptDuration": "script_ms",
        "RecalcStyleDuration": "style_ms",
        "LayoutDuration": "layout_ms",
        "TaskDuration": "all_work_ms",
    }

    def __init__(self, session: Any) -> None:
        self.session = session
        self.last = dict.fromkeys(self.NAMES.values(), 0.0)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def since_last(self) -> dict[str, float]:
        """The work since this was asked last."""
        told = self.session.send("Performance.getMetrics")["metrics"]
        now = {
            self.NAMES[one["name"]]: 1000 * one["value"]
            for one in told
            if one["name"] in self.NAMES
        }
        passed = {name: round(value - self.last[name], 3) for name, value in now.items()}
        self.last = now
        return passed


if __name__ == "__main__":
    main()
