"""Forks of the browser on a site that has everything: are they exact, and how fast are they?

    python -m benchmarks.browser_forks --trips 1000 --json forks.json
    python -m benchmarks.browser_forks --speed 10 --json speed.json

An episode is played at random from a page of the test site. A trip in it: the moment is captured
and the episode played on; then the moment is restored, which has to show the same pixels, and the
same actions are done again, which have to lead to the same observations. What differs is a silent
difference: the one thing that must not happen.

    exact       the story was told again, and all was the same
    replayed    the telling came out differently, was noticed, and the recipe was replayed; then all
                was the same
    refused     the moment could not be captured or restored, and an error said why
    broken      a step raised, which it should not
    different   none of these

Speed: after 20 actions, how long snapshot, restore, and a replay of the 20 take, by turns.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from sandboxgym.core.errors import SandboxGymError
from sandboxgym.sandboxes.browser import chromium, loop
from sandboxgym.sandboxes.browser.env import BrowserEnv
from tests.sandboxes.browser.site import NAMES, SERVED, TestSite

PAGES = [*SERVED, *NAMES]
TRIPS = 4  # in an episode
THINKING_S = 1.0  # of an agent, before a restore whose time is taken
LINE = re.compile(r"\[(\d+)\] (\w+)")
WORDS = ("milk", "bread", "two words", "ümläut", "")
KEYS = ("Tab", "Enter", "Escape", "ArrowDown", "Backspace", "a", "Control+a", "Shift+Tab", " ")


def random_action(obs: dict[str, Any], rng: np.random.Generator) -> str:
    """What a curious agent might do: mostly to what is on the page, sometimes something else."""
    lines = LINE.findall(obs["axtree"])
    tabs = len(obs["open_pages_urls"])
    if lines and rng.random() < 0.75:
        # Not the link to the index, the first on every page, all the time.
        bid, role = lines[int(rng.integers(1, len(lines)))] if len(lines) > 1 else lines[0]
        if role in ("textbox", "searchbox", "spinbutton") and rng.random() < 0.7:
            return f"fill('{bid}', {str(rng.choice(WORDS))!r})"
        if role == "combobox" and rng.random() < 0.7:
            return f"select_option('{bid}', {str(rng.choice(['red', 'g', 'blue']))!r})"
        if role == "button" and "file" in obs["url"] and rng.random() < 0.5:
            return f"upload_file('{bid}', 'a.txt', 'content {rng.integers(9)}')"
        kind = rng.choice(["click"] * 8 + ["dblclick", "hover", "focus", "press", "check"])
        if kind == "press":
            return f"press('{bid}', {str(rng.choice(KEYS))!r})"
        return f"{kind}('{bid}')"
    others = [
        "go_back()",
        "go_forward()",
        f"goto('/{rng.choice(PAGES)}')",
        f"scroll(0, {rng.integers(-400, 800)})",
        f"keyboard_press({str(rng.choice(KEYS))!r})",
        f"keyboard_type('typed {rng.integers(9)}')",
        f"mouse_click({rng.integers(500)}, {rng.integers(500)})",
        f"noop({rng.integers(20, 700)})",
        "new_tab()",
        f"tab_focus({rng.integers(tabs)})",
        "tab_close()" if tabs > 1 else "noop(100)",
    ]
    return str(others[int(rng.integers(len(others)))])


def episode(
    env: BrowserEnv, page: str, seed: int, trips: int, times: dict[str, list[float]]
) -> Iterator[tuple[str, str]]:
    """An episode with some trips in it; what became of each, and why."""
    rng = np.random.default_rng(seed)
    obs, _ = _timed(times, "reset", lambda: env.reset(seed=seed, options={"start": f"/{page}"}))
    for _ in range(trips):
        for _ in range(int(rng.integers(1, 4))):
            obs = _step(env, random_action(obs, rng), times)
        result, why, obs = trip(env, obs, rng, times)
        yield result, why
        if result in ("different", "refused"):
            return


def trip(
    env: BrowserEnv, obs: dict[str, Any], rng: np.random.Generator, times: dict[str, list[float]]
) -> tuple[str, str, dict[str, Any]]:
    """One trip: what became of it, why, and what is seen at its end."""
    try:
        moment = _timed(times, "snapshot", env.snapshot)
    except SandboxGymError as error:
        return "refused", f"{type(error).__name__}: {error}", obs
    picture = env.screenshot()
    actions, seen = [], []
    for _ in range(2):
        actions.append(random_action(obs, rng))
        obs = _step(env, actions[-1], times)
        seen.append(obs)
    told_before = env.metrics.get("unfaithful_restores", 0)
    try:
        _timed(times, "restore", lambda: env.restore(moment))
    except SandboxGymError as error:
        return "refused", f"{type(error).__name__}: {error}", obs
    told = env.metrics.get("unfaithful_restores", 0) == told_before
    recipe = moment.recipe.actions
    if env.screenshot() != picture:
        return "different", f"the picture; {recipe}", obs
    for action, expected in zip(actions, seen, strict=True):
        found, *_ = env.step(action)
        for key in expected:
            if found[key] != expected[key]:
                was, now = expected[key], found[key]
                why = f"{key} after {action} of {actions}, recipe {recipe}:\n{was}\n--- now\n{now}"
                return "different", why, obs
    return ("exact", "", obs) if told else ("replayed", env.unfaithful, obs)


def _survived(results: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    try:
        yield from results
    except Exception as error:  # noqa: BLE001 - it is counted, and told
        yield "broken", f"{type(error).__name__}: {error}"


def _step(env: BrowserEnv, action: str, times: dict[str, list[float]]) -> dict[str, Any]:
    obs, *_ = _timed(times, "step", lambda: env.step(action))
    return obs


def _timed(times: dict[str, list[float]], name: str, call: Any) -> Any:
    begun = time.perf_counter()
    result = call()
    times[name].append((time.perf_counter() - begun) * 1e3)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trips", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pages", nargs="*", default=PAGES)
    parser.add_argument("--speed", type=int, help="measure speed instead, in so many rounds")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.speed:
        measured = json.dumps(speed(arguments.speed), indent=2)
        print(measured)
        if arguments.json:
            arguments.json.write_text(measured + "\n")
        return
    times: dict[str, list[float]] = defaultdict(list)
    counts: dict[str, Counter[str]] = {page: Counter() for page in arguments.pages}
    reasons: list[dict[str, Any]] = []
    env = BrowserEnv(TestSite)
    done = 0
    for seed in count(arguments.seed):
        page = arguments.pages[seed % len(arguments.pages)]
        wanted = min(TRIPS, arguments.trips - done)
        if wanted == 0:
            break
        for result, why in _survived(episode(env, page, seed, wanted, times)):
            done += 1
            counts[page][result] += 1
            if result != "exact":
                reasons.append({"page": page, "seed": seed, "result": result, "why": why})
                print(f"{done}: {page} (seed {seed}): {result}: {why}", flush=True)
        if arguments.json:  # as far as it got: a run may take hours
            arguments.json.write_text(json.dumps(report(counts, times, reasons), indent=2) + "\n")
    env.close()
    said = report(counts, times, reasons)
    print(json.dumps({key: said[key] for key in ("trips", "total", "ms")}, indent=2))


def speed(rounds: int) -> dict[str, Any]:
    """What a snapshot, a restore and a replay of 20 actions take, in milliseconds, by turns.

    A restore that is "told" makes the page again while one waits. One that was told "ahead" is the
    third of the same moment or a later one, after a second in which an agent thinks.
    """
    env = BrowserEnv(TestSite)
    times: dict[str, list[float]] = defaultdict(list)
    env.reset(seed=1)
    script = ["goto('/{page}')", "noop(100)", "scroll(0, 50)", "mouse_click(300, 300)"]
    for page in ("form", "canvas", "spa", "select", "editable"):
        for action in script:
            _step(env, action.format(page=page), times)
    processor: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds):
        env._moment = None  # or the second snapshot of a moment costs nothing
        moment = _timed(times, "snapshot", env.snapshot)
        recipe = moment.drop_state()
        kinds = ["told", "replay"] if number % 2 else ["replay", "told"]
        for kind in [*kinds, "second", "ahead"]:
            if kind == "told":
                loop.run(env._understudy.dismiss())
            time.sleep(THINKING_S)
            begun = processor_ms()
            again = recipe if kind == "replay" else moment
            _timed(times, kind, lambda again=again: env.restore(again))
            processor[kind].append(processor_ms() - begun)
    for _ in range(rounds):
        _timed(times, "reset", lambda: env.reset(seed=1))
    env.close()
    return {
        "actions": len(moment.recipe.actions),
        "bytes": len(moment.to_bytes()),
        "ms": {name: round(statistics.median(spent), 1) for name, spent in times.items()},
        "least_ms": {name: round(min(spent), 1) for name, spent in times.items()},
        "processor_ms": {name: round(statistics.mean(s), 1) for name, s in processor.items()},
        "replay_over_told": _ratios(times["replay"], times["told"]),
        "replay_over_ahead": _ratios(times["replay"], times["ahead"]),
        "used_ahead": env._understudy.used,
        "rounds": rounds,
        "load_average": round(os.getloadavg()[0], 1),
        "told_wrongly": env.metrics.get("unfaithful_restores", 0),
    }


def _ratios(long: list[float], short: list[float]) -> dict[str, float]:
    ratios = [a / b for a, b in zip(long, short, strict=True)]
    low, median, high = np.percentile(ratios, [10, 50, 90]).round(1).tolist()
    return {"p10": low, "median": median, "p90": high}


def processor_ms() -> float:
    """Time that this process, the browser and those of its processes that ended have computed."""
    spent = time.process_time()
    browser = chromium._browser
    assert browser is not None
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == browser.pid:  # its process group
                spent += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return spent * 1e3


def report(
    counts: dict[str, Counter[str]], times: dict[str, list[float]], reasons: list[dict[str, Any]]
) -> dict[str, Any]:
    total = sum(counts.values(), Counter())
    return {
        "trips": sum(total.values()),
        "total": dict(total),
        "pages": {page: dict(count) for page, count in counts.items()},
        "ms": {
            name: {
                "median": round(statistics.median(spent), 2),
                "p90": round(float(np.percentile(spent, 90)), 2),
            }
            for name, spent in times.items()
        },
        "reasons": reasons,
    }


if __name__ == "__main__":
    main()
