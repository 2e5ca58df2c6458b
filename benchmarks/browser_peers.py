"""MiniWoB++ in this package and in BrowserGym, side by side.

    python -m benchmarks.browser_peers --json results/browser_peers.json
    python -m benchmarks.browser_peers --peer /path/to/venv/bin/python     # installed already

Both play the same tasks in turn, in one run, with the same Chromium: a reset, two hovers and a
click on the first elements of the tree. Both return the accessibility tree as text and a screenshot
(BrowserGym has no way to leave it out; it also takes a snapshot of the DOM). BrowserGym waits 0.5 s
in every step, and 0.1 s at every call of Playwright, for pages to come to rest. That is part of
what it does; the report says what it amounts to.

BrowserGym pins an old Playwright, so it lives in a virtual environment of its own, and finds a
script in place of Playwright's Chromium that starts the one of this machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

PEER = ("browsergym-core==0.14.0", "browsergym-miniwob==0.14.0")
TASKS = ("click-test", "login-user", "email-inbox", "click-tab-2", "use-slider", "book-flight")
_BID = re.compile(r"\[(\w+)\] (?:button|link|textbox|tab|checkbox|radio|generic|StaticText|image)")
_WRAPPER = """#!/bin/sh
exec {chromium} --no-sandbox "$@"
"""

Play = Callable[[str, int], dict[str, list[float]]]


def actions(tree: str) -> list[str]:
    """What is done with a page: the same in both, on the elements that each shows."""
    bids = _BID.findall(tree)
    return [f"hover('{bid}')" for bid in bids[:2]] + [f"click('{bid}')" for bid in bids[:1]]


def play(reset: Callable[[], str], step: Callable[[str], object]) -> dict[str, list[float]]:
    """One short episode, in milliseconds."""
    begun = time.perf_counter()
    tree = reset()
    times = {"reset": [(time.perf_counter() - begun) * 1e3], "step": []}
    for action in actions(tree):
        begun = time.perf_counter()
        step(action)
        times["step"].append((time.perf_counter() - begun) * 1e3)
    return times


# This package.


def our_player() -> Play:
    """Plays here."""
    from sandboxgym.sandboxes.browser.miniwob.env import MiniWoBEnv

    def played(task: str, seed: int) -> dict[str, list[float]]:
        env = MiniWoBEnv(task, screenshot=True)
        try:
            return play(lambda: str(env.reset(seed=seed)[0]["axtree"]), env.step)
        finally:
            env.close()

    return played


# BrowserGym, in its own interpreter: this file runs there with --serve.


def serve(commands: TextIO, answers: TextIO) -> None:
    """Play what is asked for, a line each."""
    import gymnasium as gym

    importlib.import_module("browsergym.miniwob")  # registers its tasks
    flatten_axtree_to_str = importlib.import_module("browsergym.utils.obs").flatten_axtree_to_str

    def tree(obs: dict[str, Any]) -> str:
        return str(flatten_axtree_to_str(obs["axtree_object"]))

    def episode(task: str, seed: int) -> dict[str, Any]:
        env: Any = gym.make(f"browsergym/miniwob.{task}").unwrapped
        failed: list[str] = []

        def step(action: str) -> None:
            obs = env.step(action)[0]
            tree(obs)
            if obs["last_action_error"]:
                failed.append(obs["last_action_error"].splitlines()[0])

        try:
            times = play(lambda: tree(env.reset(seed=seed)[0]), step)
        finally:
            env.close()
        return {"times": times, "failed": failed}

    for line in commands:
        answers.write(json.dumps(episode(**json.loads(line))) + "\n")
        answers.flush()


class Peer:
    """BrowserGym in its own process.

    Args:
        python: Its interpreter.
        scratch: A folder of ours.
        chromium: The browser of this machine.
        pages: The URL of MiniWoB++'s pages.
    """

    def __init__(self, python: str, scratch: Path, chromium: str, pages: str) -> None:
        self.failed: list[str] = []
        environment = {
            **os.environ,
            "MINIWOB_URL": pages,
            "PLAYWRIGHT_BROWSERS_PATH": str(_browsers(python, scratch, chromium)),
            "PLAYWRIGHT_SKIP_VALIDATE_HOST_REQUIREMENTS": "1",
        }
        self._process = subprocess.Popen(
            [python, __file__, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __call__(self, task: str, seed: int) -> dict[str, list[float]]:
        """Play one episode there."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"task": task, "seed": seed}) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise SystemExit(f"BrowserGym's process ended with {self._process.wait()}")
        answer = json.loads(line)
        self.failed += answer["failed"]
        times: dict[str, list[float]] = answer["times"]
        return times

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _browsers(python: str, scratch: Path, chromium: str) -> Path:
    """A folder that looks to an old Playwright as if its Chromium were in it."""
    question = "from playwright.sync_api import sync_playwright as s\nwith s() as p: "
    found = subprocess.run(
        [python, "-c", question + "print(p.chromium.executable_path)"],
        env={**os.environ, "PLAYWRIGHT_BROWSERS_PATH": str(scratch / "browsers")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    wrapper = Path(found.stdout.strip())
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_WRAPPER.format(chromium=chromium))
    wrapper.chmod(0o755)
    return scratch / "browsers"


def installed_peer(scratch: Path) -> str:
    """A new virtual environment with BrowserGym in it."""
    subprocess.run([sys.executable, "-m", "venv", scratch / "venv"], check=True)
    python = str(scratch / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", *PEER], check=True)
    return python


def compare(tasks: list[str], rounds: int, peer: Peer) -> dict[str, Any]:
    """Both in turn, task by task; the first round of each, which starts browsers, is left out."""
    players: dict[str, Play] = {"sandboxgym": our_player(), "browsergym": peer}
    times: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in players}
    for name, player in players.items():
        player(tasks[0], 0)
        print(f"{name} is ready", flush=True)
    for number in range(rounds):
        for task in tasks:
            for name, player in players.items():
                for kind, spent in player(task, number).items():
                    times[name][kind] += spent
    medians = {
        name: {kind: statistics.median(spent) for kind, spent in kinds.items()}
        for name, kinds in times.items()
    }
    ours, theirs = medians["sandboxgym"], medians["browsergym"]
    return {
        "tasks": tasks,
        "rounds": rounds,
        "ms": {
            name: {kind: _spread(spent) for kind, spent in kinds.items()}
            for name, kinds in times.items()
        },
        "times_faster": {kind: round(theirs[kind] / ours[kind], 1) for kind in ours},
        "times_faster_without_their_wait": {
            "step": round((theirs["step"] - 500) / ours["step"], 1)
        },
        "failed_actions_of_browsergym": peer.failed,
    }


def _spread(spent: list[float]) -> dict[str, float]:
    quarter, half, three_quarters = statistics.quantiles(spent, n=4)
    return {
        "n": len(spent),
        "median": round(half, 1),
        "from": round(quarter, 1),
        "to": round(three_quarters, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--peer", help="an interpreter that has BrowserGym; one is made by default")
    parser.add_argument("--chromium", default="/usr/bin/chromium-headless-shell")
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(sys.stdin, sys.stdout)
        return

    from sandboxgym.sandboxes.browser.miniwob.tasks import folder

    with tempfile.TemporaryDirectory() as scratch:
        python = arguments.peer or installed_peer(Path(scratch))
        pages = (folder() / "miniwob").as_uri() + "/"
        peer = Peer(python, Path(scratch), arguments.chromium, pages)
        try:
            report = compare(arguments.tasks, arguments.rounds, peer)
        finally:
            peer.close()
    print(json.dumps(report, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
