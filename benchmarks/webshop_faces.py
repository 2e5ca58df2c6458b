"""Play the same episodes in both faces of WebShop, with forks on the way; compare and time them.

    python -m benchmarks.webshop_faces --episodes 20 --out webshop_faces.json
        [--catalogue FOLDER]

Each episode is played in text mode and in the browser by the same random actions, some of them
nonsense. Every page has to say the same, and every info and reward has to be equal. Now and then
the browser's moment is captured, some steps are taken, and it is restored: then observation, page
and state have to be as they were, and the picture equal to the pixel. Exit code 1 says that
something was not.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.webshop.browser_env import WebShopBrowserEnv
from sandboxgym.sandboxes.webshop.env import WebShopEnv

STEPS = 30
FORK_EVERY = 6
AWAY = 3  # steps before a moment is restored
NONSENSE = ('search[it\'s "a" \\ <b> &amp; \u00e9\U0001f600]', "click[search]", "click[x]", "buy")


class Comparison:
    """Both faces, and what was seen of them."""

    def __init__(self, catalogue: str | None) -> None:
        self.text = WebShopEnv("all", catalogue=catalogue)
        self.browser = WebShopBrowserEnv("all", catalogue=catalogue, actions="webshop")
        self.ms: dict[str, list[float]] = defaultdict(list)
        self.different: list[str] = []
        self.forks = 0
        self.steps = 0

    def play(self, seed: int) -> None:
        """One episode."""
        rng = random.Random(seed)
        page, info = self.text.reset(seed=seed)
        start = time.perf_counter()
        _, same_info = self.browser.reset(seed=seed)
        self.clock("reset", start)
        self.expect("reset", (page, info), (self.browser.page_text(), same_info))
        for number in range(STEPS):
            action = chosen(rng, info)
            page, reward, done, _, info = self.text.step(action)
            start = time.perf_counter()
            _, same_reward, same_done, _, same_info = self.browser.step(action)
            self.clock("step", start)
            self.steps += 1
            seen = (self.browser.page_text(), same_reward, same_done, same_info)
            self.expect(action, (page, reward, done, info), seen)
            if done:
                break
            if number % FORK_EVERY == FORK_EVERY - 1:
                self.fork(rng)

    def fork(self, rng: random.Random) -> None:
        """Go away from this moment and come back."""
        browser = self.browser
        page, picture = browser.page_text(), browser.screenshot()
        start = time.perf_counter()
        moment = browser.snapshot()
        self.clock("snapshot", start)
        before = self.look()
        self.expect("snapshot", (moment.digest, page, picture), before)
        info = moment.last.info
        for _ in range(AWAY):
            *_, done, _, info = browser.step(chosen(rng, info))
            if done:
                break
        start = time.perf_counter()
        obs, _ = browser.restore(moment)
        self.clock("restore", start)
        self.expect("restore", before, self.look())
        self.expect("observation", moment.last.obs, obs)
        self.forks += 1

    def look(self) -> tuple[Any, ...]:
        """All that there is to see."""
        browser = self.browser
        return browser.state_digest(), browser.page_text(), browser.screenshot()

    def clock(self, name: str, start: float) -> None:
        """Remember how long something took."""
        self.ms[name].append(1e3 * (time.perf_counter() - start))

    def expect(self, what: str, wanted: Any, found: Any) -> None:
        """Remember where something is not as it should be."""
        if wanted != found:
            self.different.append(f"{what}: {found!r:.300} instead of {wanted!r:.300}")


def chosen(rng: random.Random, info: dict[str, Any]) -> str:
    """Mostly something possible, and buying seldom."""
    if rng.random() < 0.1:
        return rng.choice(NONSENSE)
    possible = [a for a in info["admissible_commands"] if a != "click[buy now]"]
    return "click[buy now]" if rng.random() < 0.03 else rng.choice(possible)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare both faces of WebShop.")
    parser.add_argument("--catalogue", help="a folder with WebShop's files; else generated")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("webshop_faces.json"))
    arguments = parser.parse_args()
    comparison = Comparison(arguments.catalogue)
    for seed in range(arguments.episodes):
        comparison.play(seed)
    metrics = comparison.browser.metrics
    result = {
        "episodes": arguments.episodes,
        "steps": comparison.steps,
        "forks": comparison.forks,
        "different": comparison.different[:20],
        "replayed": metrics.get("unfaithful_restores", 0),
        "median_ms": {
            name: round(statistics.median(values), 2) for name, values in comparison.ms.items()
        },
    }
    comparison.browser.close()
    arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))
    raise SystemExit(1 if comparison.different else 0)


if __name__ == "__main__":
    main()
