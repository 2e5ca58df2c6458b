"""Play generated games with the stock ALFWorld engine and with ours, and compare every word.

    python benchmarks/crosscheck_alfworld.py --stock /path/to/venv/bin/python --out crosscheck.json

The stock engine (``pip install alfworld textworld``) builds for minutes and fits few Python
versions, so it lives in a virtual environment of its own: this file is run a second time there, as
a script that imports nothing of ours. Each game is played twice: along its walkthrough, with a
look around before every step, and at random with some nonsense commands. Observations, admissible
commands and ``won`` must be equal, character for character. Exit code 1 says that they are not.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

NONSENSE = ("go to moon 1", "take", "Look", "look around", "")
LOOKING = ("look", "inventory", "help")

Moment = dict[str, Any]  # action, obs, admissible, won
Episode = list[Moment]


class Player:
    """One engine with one game: starts it afresh, acts, and tells what is to be seen."""

    def __init__(self, start: Callable[[], Moment], act: Callable[[str], Moment]) -> None:
        self.start = start
        self.act = act


def play_script(player: Player, commands: list[str]) -> Episode:
    episode = [player.start()]
    episode += [player.act(command) for command in commands]
    return episode


def play_at_random(player: Player, seed: int, steps: int) -> Episode:
    """Mostly admissible commands, seldom nonsense; the same ones if the engine does the same."""
    rng = random.Random(seed)
    episode = [player.start()]
    while len(episode) <= steps and not episode[-1]["won"]:
        if rng.random() < 0.1:
            command = rng.choice(NONSENSE)
        else:
            command = rng.choice(episode[-1]["admissible"])
        episode.append(player.act(command))
    return episode


def play(player: Player, game: dict[str, Any], seed: int, steps: int) -> list[Episode]:
    attentive = [
        command
        for index, step in enumerate(game["walkthrough"])
        for command in (LOOKING[index % len(LOOKING)], step)
    ]
    return [play_script(player, attentive), play_at_random(player, seed, steps)]


# --- the two engines ------------------------------------------------------------------------


def stock_player(path: Path) -> Player:
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler

    infos = textworld.EnvInfos(won=True, admissible_commands=True)
    env = textworld.start(str(path), request_infos=infos, wrappers=[AlfredDemangler()])

    def moment(action: str | None, state: Any) -> Moment:
        return {
            "action": action,
            "obs": state.feedback,
            "admissible": state["admissible_commands"],
            "won": bool(state["won"]),
        }

    return Player(
        start=lambda: moment(None, env.reset()),
        act=lambda command: moment(command, env.step(command)[0]),
    )


def our_player(path: Path) -> Player:
    from sandboxgym.sandboxes.text.engine import Game

    game = Game.from_json(path.read_text("utf-8"), name=path.parent.name)
    position = game.start()

    def moment(action: str | None, observation: str) -> Moment:
        return {
            "action": action,
            "obs": observation,
            "admissible": list(position.admissible_commands),
            "won": position.won,
        }

    def start() -> Moment:
        nonlocal position
        position = game.start()
        return moment(None, position.observation)

    return Player(start=start, act=lambda command: moment(command, position.act(command)))


# --- the comparison -------------------------------------------------------------------------


def first_difference(ours: list[Episode], stock: list[Episode]) -> dict[str, Any] | None:
    for number, (mine, other) in enumerate(zip(ours, stock, strict=True)):
        for step, (a, b) in enumerate(zip(mine, other, strict=False)):
            if a != b:
                return {"episode": number, "step": step, "ours": a, "stock": b}
        if len(mine) != len(other):
            return {"episode": number, "ours": len(mine), "stock": len(other)}
    return None


def write_sample(folder: Path, per_cell: int) -> list[Path]:
    """Games of every task type, difficulty and split; ``per_cell`` of each combination."""
    from sandboxgym.sandboxes.text.synthetic import PRESETS, SPLITS, TASK_TYPES, write_games

    return [
        path
        for difficulty in PRESETS
        for split in SPLITS
        for path in write_games(
            folder / difficulty, split, per_cell * len(TASK_TYPES), difficulty=difficulty
        )
    ]


def compare(paths: list[Path], stock_python: str, steps: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        job, answer = Path(folder) / "job.json", Path(folder) / "answer.jsonl"
        job.write_text(json.dumps({"paths": [str(path) for path in paths], "steps": steps}))
        subprocess.run([stock_python, __file__, "--job", str(job), str(answer)], check=True)
        recordings = [json.loads(line) for line in answer.open(encoding="utf-8")]

    mismatches, seconds, steps_played = [], 0.0, 0
    per_task: Counter[str] = Counter()
    for seed, (path, recording) in enumerate(zip(paths, recordings, strict=True)):
        began = time.perf_counter()
        ours = play(our_player(path), json.loads(path.read_text("utf-8")), seed, steps)
        seconds += time.perf_counter() - began
        steps_played += sum(len(episode) - 1 for episode in ours)
        per_task[path.parts[-3].split("-")[0]] += 1
        difference = first_difference(ours, recording["episodes"])
        won = [episode[-1]["won"] for episode in recording["episodes"]]
        if difference is None and not won[0]:
            difference = {"walkthrough": "does not win in the stock engine"}
        if difference is not None:
            mismatches.append({"game": "/".join(path.parts[-4:-1]), **difference})
    return {
        "games": len(paths),
        "games_per_task": dict(per_task),
        "steps": steps_played,
        "mismatches": mismatches,
        "seconds_ours": round(seconds, 3),
        "seconds_stock": round(sum(recording["seconds"] for recording in recordings), 3),
    }


def record_stock(job: Path, answer: Path) -> None:
    """Run inside the stock virtual environment: play the games and write down what happened."""
    order = json.loads(job.read_text())
    with answer.open("w", encoding="utf-8") as lines:
        for seed, name in enumerate(order["paths"]):
            path = Path(name)
            began = time.perf_counter()
            episodes = play(
                stock_player(path), json.loads(path.read_text("utf-8")), seed, order["steps"]
            )
            seconds = time.perf_counter() - began
            lines.write(json.dumps({"episodes": episodes, "seconds": seconds}) + "\n")


def main() -> int:
    if sys.argv[1:2] == ["--job"]:
        record_stock(Path(sys.argv[2]), Path(sys.argv[3]))
        return 0
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--stock", required=True, help="Python interpreter with alfworld")
    parser.add_argument("--per-cell", type=int, default=1, help="games per combination")
    parser.add_argument("--steps", type=int, default=40, help="length of a random episode")
    parser.add_argument("--out", type=Path, help="where to write the result as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = write_sample(Path(folder), options.per_cell)
        result = compare(paths, options.stock, options.steps)
    report = json.dumps(result, indent=2)
    print(report)
    if options.out is not None:
        options.out.write_text(report + "\n", "utf-8")
    return 1 if result["mismatches"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
