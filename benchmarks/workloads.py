"""What the benchmarks of pools run: a household, a repository, a shop in a browser.

Each is a function that makes an environment, and one that says what to do in a lane at some depth:
the same at each run, another thing in each lane. `BarePlayer` is what pools are compared with.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym

import sandboxgym as sg

make_world = partial(
    gym.make, "sandboxgym/ALFWorld-v0", source="synthetic", split="valid_seen", num_games=10
)


class BarePlayer:
    """Random commands in environments of this process."""

    def __init__(self, envs: list[gym.Env[Any, Any]]) -> None:
        self.envs = envs
        self.dice = random.Random(0)
        self.infos = [env.reset(seed=number)[1] for number, env in enumerate(envs)]

    def play(self, steps: int) -> float:
        """Seconds of processor time that one of some steps takes."""
        start = time.process_time()
        for number in range(steps):
            at = number % len(self.envs)
            command = self.dice.choice(self.infos[at]["admissible_commands"])
            _, _, terminated, truncated, self.infos[at] = self.envs[at].step(command)
            if terminated or truncated:
                self.infos[at] = self.envs[at].reset()[1]
        return (time.process_time() - start) / steps


class Workload(NamedTuple):
    """An environment, and how it is played."""

    make: Callable[[], gym.Env[Any, Any]]
    act: Callable[[sg.ForkPool, int, int], str]


def household(folder: Path) -> Workload:
    """ALFWorld, in generated houses."""
    del folder
    commands = ("look", "inventory", "go to fridge 1", "go to shelf 1", "examine shelf 1")
    return Workload(make_world, lambda pool, lane, depth: commands[(lane + depth) % len(commands)])


def repository(folder: Path) -> Workload:
    """The source of this package, and what an agent would do with it."""
    source = Path(sg.__file__).parent / "core"
    for path in source.rglob("*.py"):
        (folder / path.name).write_text(path.read_text())
    commands = (
        "grep -rn 'def ' . | wc -l",
        "sed -n 1,60p forking.py",
        "python3 -m py_compile forking.py && echo compiled",
        "sed -i 's/snapshot/snapshot/g' front.py && git diff --stat 2>/dev/null; ls",
        "python3 -c 'import ast; print(len(ast.dump(ast.parse(open(\"env.py\").read()))))'",
    )
    make = partial(gym.make, "sandboxgym/Repo-v0", repository=str(folder), commit=None)
    return Workload(make, lambda pool, lane, depth: commands[(lane + depth) % len(commands)])


def shop(folder: Path) -> Workload:
    """A shop with a cart, in a browser."""
    del folder
    make = partial(gym.make, "sandboxgym/Browser-v0", site="benchmarks.workloads:Shop")
    return Workload(make, press)


def press(pool: sg.ForkPool, lane: int, depth: int) -> str:
    """What an agent does: three things on a page, then a link or a button that leads to another."""
    seen = pool.last(lane)
    assert seen is not None
    kinds = (r"link|button 'Take", "textbox", "checkbox", "button 'More")
    things = re.findall(
        rf"^\s*\[(\w+)\] (?:{kinds[(depth + 1) % 4]})", seen[0]["axtree"], re.MULTILINE
    )
    thing = things[(7 * lane + 5 * depth) % len(things)]
    return f"fill('{thing}', 'of {lane}')" if (depth + 1) % 4 == 1 else f"click('{thing}')"


class Shop:
    """A WSGI application: 40 goods on four pages, which go into a cart."""

    STYLE = b"body { font-family: sans-serif } li { margin: 4px; color: #333 }"

    def __init__(self) -> None:
        self.cart: list[int] = []

    def get_state(self) -> list[int]:
        """All that the server keeps."""
        return list(self.cart)

    def set_state(self, state: list[int]) -> None:
        """Go on from there."""
        self.cart = list(state)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """Show a page, or what became of a button."""
        path = environ["PATH_INFO"]
        if path == "/style.css":
            start_response("200 OK", [("Content-Type", "text/css")])
            return [self.STYLE]
        kind, _, number = path[1:].partition("/")
        if kind == "take":
            self.cart.append(int(number))
            start_response("303 See Other", [("Location", f"/item/{number}")])
            return []
        body = self.item(int(number)) if kind == "item" else self.shelf(int(number or 0))
        start_response("200 OK", [("Content-Type", "text/html; charset=utf-8")])
        return [self.page(body).encode()]

    def page(self, body: str) -> str:
        """A whole page, with a form whose button a script answers."""
        pages = " ".join(f"<a href=/page/{n}>Page {n}</a>" for n in range(4))
        gifts = "".join(f"<label><input type=checkbox>Wrap {n}</label>" for n in range(4))
        return (
            f"<!doctype html><title>Shop</title><link rel=stylesheet href=/style.css><nav>{pages}"
            f"</nav><h1>Shop</h1><p>{len(self.cart)} in the cart</p>{body}"
            f"<label>Note <input></label>{gifts}<button id=more>More</button><ul id=list></ul>"
            "<script>more.onclick = () => { "
            "list.innerHTML += `<li>${list.children.length} notes` }</script>"
        )

    def shelf(self, number: int) -> str:
        """Ten goods."""
        goods = range(10 * number, 10 * number + 10)
        return f"<ul>{''.join(f'<li><a href=/item/{n}>Item {n}</a>' for n in goods)}</ul>"

    def item(self, number: int) -> str:
        """One of the goods, and a button to take it."""
        had = self.cart.count(number)
        return (
            f"<h2>Item {number}</h2><p>{had} of it in the cart</p>"
            f"<form method=post action=/take/{number}><button>Take it</button></form>"
        )
