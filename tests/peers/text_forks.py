"""Compares forks of text worlds with a twin that was never forked."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sandboxgym as sg
from sandboxgym.core.digest import digest, first_difference

NOISE = ("look", "inventory", "xyzzy", "", "again", "undo", "wait", "look\nlook", "\\U", "é")
TESTBED = "sandboxgym.sandboxes.text.testbed_games"

Make = Callable[[], Any]
Choose = Callable[[dict[str, Any], random.Random], str]


def some_command(info: dict[str, Any], dice: random.Random) -> str:
    """Mostly an admissible command, seldom another."""
    commands = info.get("admissible_commands")
    if not commands or dice.random() < 0.1:
        return dice.choice(NOISE)
    return dice.choice(commands)


def walk(
    env: Any, info: dict[str, Any], steps: int, dice: random.Random, choose: Choose
) -> tuple[list[str], list[Any]]:
    commands, results = [], []
    for _ in range(steps):
        commands.append(choose(info, dice))
        results.append(list(env.step(commands[-1])))
        info = results[-1][-1]
        if results[-1][2] or results[-1][3]:
            break
    return commands, results


def repeat(env: Any, commands: Sequence[str]) -> list[Any]:
    return [list(env.step(command)) for command in commands]


def differing_round_trips(
    make: Make,
    total: int,
    *,
    depth: int = 25,
    after: int = 4,
    seeds: int = 4,
    fresh_every: int = 25,
    choose: Choose = some_command,
) -> list[str]:
    """Restore moments of random walks elsewhere, and repeat what the walk did next.

    The walks themselves are never restored, so what they did next is the truth. Each restore goes
    into an instance that was just used for something else, or into a new one.
    """
    dice = random.Random(0)
    origin, used = make(), make()
    differences: list[str] = []
    done = 0
    try:
        while done < total:
            _, info = origin.reset(seed=dice.randrange(seeds))
            _, past = walk(origin, info, dice.randrange(depth), dice, choose)
            if past and (past[-1][2] or past[-1][3]):
                continue
            moment = origin.snapshot()
            shown = [moment.last.obs, moment.last.info]
            commands, truth = walk(origin, moment.last.info, after, dice, choose)
            for _ in range(min(5, total - done)):
                target = make() if done % fresh_every == 0 else used
                found = list(target.restore(moment)), repeat(target, commands)
                difference = first_difference([shown, truth], list(found))
                if difference is not None:
                    differences.append(f"after {len(past)} steps, {commands}: {difference}")
                if target is used:
                    _, info = used.restore(moment)
                    walk(used, info, after, dice, choose)  # so that it is somewhere else
                else:
                    target.close()
                done += 1
    finally:
        origin.close()
        used.close()
    return differences


def assert_all_ways_lead_on(
    make: Make, factory: str, tmp_path: Path, *, depth: int = 6, choose: Choose = some_command
) -> None:
    """Restore one moment in every way there is; each has to continue as the never-forked twin."""
    dice = random.Random(1)
    maker = make()
    _, info = maker.reset(seed=5)
    before, _ = walk(maker, info, depth, dice, choose)
    moment = maker.snapshot()
    after, _ = walk(maker, moment.last.info, depth, dice, choose)

    twin = make()
    twin.reset(seed=5)
    past, truth = repeat(twin, before), repeat(twin, after)
    twin.close()
    expected = [[past[-1][0], past[-1][-1]], truth]

    forked = sg.fork(maker, 1)[0]  # of the end of the episode, which must not matter
    ways: dict[str, tuple[Any, sg.Snapshot]] = {
        "in its maker": (maker, moment),
        "in a fork": (forked, moment),
        "in a new instance": (make(), moment),
        "from bytes": (make(), sg.Snapshot.from_bytes(moment.to_bytes())),
        "by its recipe": (make(), moment.drop_state()),
    }
    for way, (env, snapshot) in ways.items():
        found = [list(env.restore(snapshot)), repeat(env, after)]
        assert first_difference(expected, found) is None, way
    maker.close()
    late = make()
    found = [list(late.restore(moment)), repeat(late, after)]
    assert first_difference(expected, found) is None, "after its maker was closed"
    for env in (late, *(env for env, _ in ways.values())):
        env.close()
    moment.save(tmp_path / "moment.snap")
    for hash_seed in ("1", "2"):
        found = _in_another_process(factory, tmp_path / "moment.snap", after, hash_seed)
        assert found == digest(expected), f"in a process with PYTHONHASHSEED={hash_seed}"


_ELSEWHERE = """
import importlib, json, sys
import sandboxgym as sg
from sandboxgym.core.digest import digest
module, name, path, commands = sys.argv[1:]
env = getattr(importlib.import_module(module), name)()
first = list(env.restore(sg.Snapshot.load(path)))
print(digest([first, [list(env.step(command)) for command in json.loads(commands)]]))
env.close()
"""


def _in_another_process(
    factory: str, snapshot: Path, commands: Sequence[str], hash_seed: str
) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, TESTBED, factory, str(snapshot), json.dumps(commands)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()[-1]


def mapped(library: str) -> int:
    """How many parts of a library are in this process's memory."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sum(library in line for line in lines)
