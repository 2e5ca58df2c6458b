"""What forking the text worlds costs, beside what their libraries offer for it themselves.

    python benchmarks/text_forks.py --out benchmarks/results/text_forks.json

Measures each world whose library is installed, on a small game that TextWorld's generator makes or
that the library has. Times are medians in milliseconds, through the environment alone; a replay is
one of `--depth` steps, into a used instance. `library_copy_ms` is what the library offers instead:
`copy()` of TextWorld and of Jericho, `clone()` of TextWorld-Express, a reset and the same commands
for the others.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sandboxgym as sg
from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.sandboxes.text import testbed_games

JERICHO_COMMANDS = ("look", "inventory", "go north", "go south", "go east", "go west", "take all")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--depth", type=int, default=20, help="steps before the moment")
    parser.add_argument("--calls", type=int, default=200, help="timed calls of what is quick")
    parser.add_argument("--only", nargs="*", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    options = parser.parse_args()
    result: dict[str, Any] = {
        "machine": {"python": platform.python_version(), "cpu": platform.machine()},
        "depth": options.depth,
        "worlds": {},
    }
    for name in options.only:
        try:
            result["worlds"][name] = measured(*WORLDS[name], options.depth, options.calls)
        except MissingDependencyError as error:
            result["worlds"][name] = {"not_measured": str(error)}
        print(name, json.dumps(result["worlds"][name]), flush=True)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")


def measured(
    make: Callable[[], Any], library_copy: Callable[[Any], Any], depth: int, calls: int
) -> dict[str, Any]:
    env, used = make(), make()
    first_reset_ms = once(lambda: env.reset(seed=1))
    used.reset(seed=2)
    steps = walked(env, depth)
    moment = env.snapshot()
    recipe = moment.drop_state()
    quick = env.fidelity.mechanism == "native"
    few = max(3, calls // 40)
    result = {
        "mechanism": env.fidelity.mechanism,
        "depth": len(steps),
        "first_reset_ms": first_reset_ms,
        "step_ms": round(statistics.median(steps), 3),
        "snapshot_ms": timed(env.snapshot, calls),
        "restore_ms": timed(lambda: used.restore(moment), calls if quick else few),
        "replay_ms": timed(lambda: used.restore(recipe), few),
        "fork_ms": timed(lambda: sg.fork(env, 1)[0].close(), few),
        "file_bytes": len(moment.to_bytes()),
        "library_copy_ms": timed(lambda: library_copy(env), few),
    }
    env.close()
    used.close()
    return result


def walked(env: Any, depth: int) -> list[float]:
    """Milliseconds of each step of a random walk that does not end the episode."""
    dice = random.Random(0)
    info = env.snapshot().last.info
    times = []
    for _ in range(depth):
        command = dice.choice(info.get("admissible_commands") or JERICHO_COMMANDS)
        start = time.perf_counter()
        _, _, terminated, truncated, info = env.step(command)
        times.append((time.perf_counter() - start) * 1000)
        if terminated or truncated:
            raise RuntimeError("the random commands ended the game; choose another depth")
    return times


def once(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return round((time.perf_counter() - start) * 1000, 3)


def timed(call: Callable[[], Any], calls: int) -> float:
    call()
    return round(statistics.median(once(call) for _ in range(calls)), 3)


def copy_by_textworld(env: Any) -> None:
    env._play._env.copy().close()


def copy_by_jericho(env: Any) -> None:
    env._machine.frotz.copy().close()


def clone_by_express(env: Any) -> None:
    env.library.clone().close()


def played_again(env: Any) -> None:
    """A reset and the same commands, without any comparison."""
    recipe = env.snapshot().recipe
    env.reset(seed=recipe.seed)
    for action in recipe.actions:
        env.step(action)


WORLDS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "textworld": (testbed_games.textworld_env, copy_by_textworld),
    "jericho": (testbed_games.jericho_env, copy_by_jericho),
    "scienceworld": (testbed_games.scienceworld_env, played_again),
    "textworld_express": (testbed_games.textworld_express_env, clone_by_express),
    "stock_alfworld": (testbed_games.stock_alfworld_env, played_again),
}


if __name__ == "__main__":
    main()
