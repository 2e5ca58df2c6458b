"""How fast games load, reset and step: our engine, and the stock one where it is installed.

    python benchmarks/alfworld_engines.py --games DATA/json_2.1.1/valid_seen --out engines.json
    python benchmarks/alfworld_engines.py --games ... --stock-python /path/to/venv/bin/python

A step is a random admissible command, with the observation, the admissible commands and `won`
afterwards. The stock engine (`pip install alfworld textworld`) builds for minutes and fits few
Python versions, so it usually lives in an environment of its own: this file runs a second time
there and imports nothing of ours. Both engines get the same commands for the same games, by turns,
and must say the same. Times are in milliseconds, of the clock on the wall or (`--clock cpu`, for a
busy machine) of the processor; a ratio is stock over ours, one for each game and round.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Times = dict[str, list[float]]
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
MIB = 2**20
T = TypeVar("T")


def main() -> None:
    if sys.argv[1:] == ["--serve-stock"]:
        serve_stock()
        return
    args = arguments()
    paths = sorted(args.games.rglob("game.tw-pddl"))
    if not paths:
        sys.exit(f"no game.tw-pddl below {args.games}")
    paths = [paths[i * len(paths) // args.count] for i in range(min(args.count, len(paths)))]
    result: dict[str, Any] = {
        "machine": {"python": platform.python_version(), "cpus": os.cpu_count()},
        "games": len(paths),
        "steps_per_game": args.steps,
        "rounds": args.rounds,
        **side_by_side(paths, args),
        "rate": rate(paths, args),
        "memory_mib": in_new_process(memory, paths),
    }
    text = json.dumps(result, indent=2)
    print(text)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--games", type=Path, required=True, help="folder with game.tw-pddl files")
    parser.add_argument("--count", type=int, default=10, help="games, spread over the folder")
    parser.add_argument("--steps", type=int, default=50, help="commands per game")
    parser.add_argument("--rounds", type=int, default=3, help="how often each game is played")
    parser.add_argument("--processes", type=int, default=2, help="for the rate of many lanes")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--stock-python", help="interpreter with alfworld and textworld")
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    return parser.parse_args()


# --- The same commands for both engines ----------------------------------------------------------


def side_by_side(paths: list[Path], args: argparse.Namespace) -> dict[str, Any]:
    ours: list[Times] = []
    stock: list[Times] = []
    worker = StockWorker(args.stock_python) if args.stock_python else None
    for turn in range(args.rounds):
        for number, path in enumerate(paths):
            commands, said, times = play_ours(
                path, args.steps, turn * len(paths) + number, args.clock
            )
            ours.append(times)
            if worker:
                heard, times = worker.play(path, commands, args.clock)
                if heard != said:
                    sys.exit(f"the engines say different things in {path}")
                stock.append(times)
    result: dict[str, Any] = {"ours_ms": summary(ours)}
    if worker:
        worker.close()
        result["stock_ms"] = summary(stock)
        result["stock_over_ours"] = {
            what: spread(
                [
                    statistics.median(theirs[what]) / statistics.median(mine[what])
                    for theirs, mine in zip(stock, ours, strict=True)
                ]
            )
            for what in ("load", "reset", "step")
        }
    return result


def timed(call: Callable[[], T], times: list[float], clock: str) -> T:
    began = CLOCKS[clock]()
    result = call()
    times.append((CLOCKS[clock]() - began) * 1000)
    return result


def play_ours(path: Path, steps: int, seed: int, clock: str) -> tuple[list[str], list[str], Times]:
    """Play a game at random; return the commands, what was said, and the times."""
    from sandboxgym.sandboxes.text.engine import Game, Position

    def start() -> Position:
        position = game.start()
        _ = position.observation, position.admissible_commands, position.won
        return position

    def step() -> tuple[str, tuple[str, ...], bool]:
        return position.act(command), position.admissible_commands, position.won

    times: Times = {"load": [], "reset": [], "step": []}
    game = timed(lambda: Game.load(path), times["load"], clock)
    start()
    position = timed(start, times["reset"], clock)
    dice = random.Random(seed)
    commands: list[str] = []
    said = [position.observation]
    admissible = position.admissible_commands
    for _ in range(steps):
        command = dice.choice(admissible)
        observation, admissible, _ = timed(step, times["step"], clock)
        commands.append(command)
        said.append(observation)
    return commands, said, times


def play_stock(path: str, commands: list[str], clock: str) -> tuple[list[str], Times]:
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler

    def load() -> Any:
        infos = textworld.EnvInfos(won=True, admissible_commands=True)
        env = textworld.start(path, request_infos=infos, wrappers=[AlfredDemangler()])
        env.reset()
        return env

    times: Times = {"load": [], "reset": [], "step": []}
    env = timed(load, times["load"], clock)
    said = [timed(env.reset, times["reset"], clock).feedback]
    for command in commands:
        state, _, _ = timed(functools.partial(env.step, command), times["step"], clock)
        said.append(state.feedback)
    env.close()
    return said, times


class StockWorker:
    """The stock engine in its own interpreter: one line of JSON in, one line out, for each game."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, __file__, "--serve-stock"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def play(self, path: Path, commands: list[str], clock: str) -> tuple[list[str], Times]:
        """Let the stock engine play a game."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        to.write(json.dumps([str(path), commands, clock]) + "\n")
        to.flush()
        answer = back.readline()
        if not answer:
            sys.exit("the stock engine stopped; does its interpreter have alfworld and textworld?")
        said, times = json.loads(answer)
        return said, times

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()


def serve_stock() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the stock engine prints is not part of the answers
    for line in sys.stdin:
        answers.write(json.dumps(play_stock(*json.loads(line))) + "\n")
        answers.flush()


def summary(played: list[Times]) -> dict[str, Any]:
    return {
        what: spread([time for times in played for time in times[what]])
        for what in ("load", "reset", "step")
    }


def spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    at = {"min": 0, "median": len(ordered) // 2, "p90": len(ordered) * 9 // 10, "max": -1}
    return {name: round(ordered[place], 4) for name, place in at.items()}


# --- Many lanes, and memory ----------------------------------------------------------------------


def rate(paths: list[Path], args: argparse.Namespace) -> dict[str, float]:
    """Steps per second of 64 lanes over all games, in one process and in several at once."""
    one = play_lanes(paths, 0, args.clock)
    with multiprocessing.get_context("spawn").Pool(args.processes) as pool:
        jobs = [(paths, seed, args.clock) for seed in range(args.processes)]
        together = sum(pool.starmap(play_lanes, jobs))
    return {"one_process": round(one), f"{args.processes}_processes": round(together)}


def play_lanes(
    paths: list[Path], seed: int, clock: str, lanes: int = 64, episodes: int = 4
) -> float:
    from sandboxgym.sandboxes.text.engine import Game

    games = [Game.load(path) for path in paths]
    dice = random.Random(seed)
    steps = 0
    spent = 0.0
    for _ in range(episodes):
        positions = [games[lane % len(games)].start() for lane in range(lanes)]
        for _ in range(50):
            commands = [dice.choice(position.admissible_commands) for position in positions]
            began = CLOCKS[clock]()
            for position, command in zip(positions, commands, strict=True):
                position.act(command)
                _ = position.admissible_commands, position.won
            spent += CLOCKS[clock]() - began
            steps += lanes
    return steps / spent


def in_new_process(function: Callable[..., Any], *args: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, args)


def memory(paths: list[Path]) -> dict[str, float]:
    """What games cost, loaded and much played, and what live positions cost on top."""
    from sandboxgym.sandboxes.text.engine import Game, Position

    def play(position: Position, steps: int) -> Position:
        for _ in range(steps):
            position.act(dice.choice(position.admissible_commands))
        return position

    dice = random.Random(0)
    empty = resident()
    games = [Game.load(path) for path in paths]
    loaded = resident()
    for game in games:
        for _ in range(40):
            play(game.start(), 50)
    played = resident()
    positions = [play(games[lane % len(games)].start(), 10) for lane in range(1000)]
    return {
        "interpreter": empty,
        f"{len(games)}_games_loaded": loaded - empty,
        f"{len(games)}_games_played": played - empty,
        f"{len(positions)}_positions": resident() - played,
    }


def resident() -> int:
    """The resident memory of this process; Linux only."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // MIB


if __name__ == "__main__":
    main()
