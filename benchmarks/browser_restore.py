"""Where the time of a restore goes that was not told ahead: its stages, in milliseconds.

    python -m benchmarks.browser_restore --rounds 20 --json browser_restore.json

After 20 actions over five documents, as in `benchmarks.browser_forks --speed`, the last moment is
restored again and again, each time in a context that knows nothing of it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.browser_forks import processor_ms
from sandboxgym.sandboxes.browser import loop
from sandboxgym.sandboxes.browser.env import BrowserEnv
from sandboxgym.sandboxes.browser.episode import Episode
from sandboxgym.sandboxes.browser.session import Session
from sandboxgym.sandboxes.browser.tab import Tab
from tests.sandboxes.browser.site import TestSite

DOCUMENTS = ("form", "canvas", "spa", "select", "editable")
ACTIONS = ("goto('/{page}')", "noop(100)", "scroll(0, 50)", "mouse_click(300, 300)")
THINKING_S = 1.0  # of an agent, in which blank contexts are made
# None is part of another one. The rest is time that passes between actions and after them.
STAGES = {
    "a page in a blank context": (Session, "start"),
    "the entries of its history": (Tab, "pass_through"),
    "opening the document": (Session, "open"),
    "looking where the agent looked": (Episode, "look"),
    "repeating actions": (Episode, "repeat"),
    "all that is compared": (Episode, "fingerprint"),
}


class Stopwatch:
    """Notes how long the stages of a restore take."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        for stage, (owner, name) in STAGES.items():
            called = vars(owner)[name]
            if isinstance(called, classmethod):
                setattr(owner, name, classmethod(self._timed(stage, called.__func__)))
            else:
                setattr(owner, name, self._timed(stage, called))

    def _timed(self, stage: str, called: Callable[..., Any]) -> Callable[..., Any]:
        async def timed(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            try:
                return await called(*args, **kwargs)
            finally:
                self.spent[stage] += (time.perf_counter() - begun) * 1e3

        return timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    measured = json.dumps(measure(arguments.rounds), indent=2)
    print(measured)
    if arguments.json:
        arguments.json.write_text(measured + "\n")


def measure(rounds: int) -> dict[str, Any]:
    """The median of each stage, of the whole, and what the processors computed."""
    env = BrowserEnv(TestSite)
    env.reset(seed=1)
    for page in DOCUMENTS:
        for action in ACTIONS:
            env.step(action.format(page=page))
    moment = env.snapshot()
    story = env._present().story  # of the last document
    stopwatch = Stopwatch()
    times: dict[str, list[float]] = defaultdict(list)
    processor: list[float] = []
    for _ in range(rounds):
        loop.run(env._understudy.dismiss())
        time.sleep(THINKING_S)
        stopwatch.spent.clear()
        computed, begun = processor_ms(), time.perf_counter()
        env.restore(moment)
        times["all"].append((time.perf_counter() - begun) * 1e3)
        processor.append(processor_ms() - computed)
        for stage in STAGES:
            times[stage].append(stopwatch.spent[stage])
    env.close()
    return {
        "entries": len(story.start.history),
        "actions_repeated": len(story.deeds),
        "ms": {stage: round(statistics.median(spent), 1) for stage, spent in times.items()},
        "processor_ms": round(statistics.mean(processor), 1),
        "rounds": rounds,
        "load_average": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    main()
