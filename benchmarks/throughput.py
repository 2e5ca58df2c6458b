"""What a pool of environments costs: steps, forks, trees, faults, memory.

    python benchmarks/throughput.py --out throughput.json
    python benchmarks/throughput.py steps forks          # only these
    python benchmarks/throughput.py tree --env repo

Rates are given by the clock on the wall, and by processor time: what the machine would do if it
had nothing else to do (`*_by_cpu`, for so many cores). Bare environments are measured by turns with
the pool, so that both see the same load.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym

import sandboxgym as sg
from sandboxgym.conformance import processes
from sandboxgym.pool import Reset, Restore, Step

CORES = 2
DEPTH, MEMBERS, BRANCHES = 25, 4, (5, 10, 15, 20)
ALFWORLD = "sandboxgym/ALFWorld-v0"
WORLD = {"source": "synthetic", "split": "valid_seen", "num_games": 10}
make_world = partial(gym.make, ALFWORLD, **WORLD)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("what", nargs="*", help=f"out of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--lanes", type=int, default=64, help="for steps")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--steps", type=int, default=10_000, help="for faults")
    parser.add_argument("--seed", type=int, default=0, help="for faults")
    parser.add_argument("--env", choices=["alfworld", "repo"], help="for tree; both by default")
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    args = parser.parse_args()
    result: dict[str, Any] = {
        "machine": {
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
            "load_before": os.getloadavg()[0],
        }
    }
    for name in args.what or BENCHMARKS:
        result[name] = BENCHMARKS[name](args)
        print(json.dumps({name: result[name]}, indent=2), flush=True)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(result, indent=2) + "\n")


# --- Steps ---------------------------------------------------------------------------------------


def steps(args: argparse.Namespace) -> dict[str, Any]:
    """Random commands in many lanes, through the vector front; and in one bare environment."""
    lanes, turns = args.lanes, 60
    envs = sg.ForkableVectorEnv(
        make_world, lanes, autoreset_mode="NextStep", workers=CORES, time_limit=None
    )
    bare = make_world()
    dice = random.Random(0)
    infos = envs.reset(seed=0)[1]
    info = bare.reset(seed=0)[1]
    wall, pool_cpu, owner_cpu, bare_cpu = [], [], [], []
    for turn in range(args.rounds + 3):
        start, used, own = time.perf_counter(), cpu_of(envs.pool), time.process_time()
        for _ in range(turns):
            actions = tuple(dice.choice(commands) for commands in infos["admissible_commands"])
            *_, infos = envs.step(actions)
        spent = time.perf_counter() - start
        used, own = cpu_of(envs.pool) - used, time.process_time() - own
        begun = time.process_time()
        for _ in range(turns * lanes // 8):
            action = dice.choice(info["admissible_commands"])
            _, _, terminated, truncated, info = bare.step(action)
            if terminated or truncated:
                info = bare.reset()[1]
        alone = time.process_time() - begun
        if turn >= 3:  # games and memories are warm by then
            wall.append(turns * lanes / spent)
            pool_cpu.append(used / turns / lanes * 1e6)
            owner_cpu.append(own / turns / lanes * 1e6)
            bare_cpu.append(alone / (turns * lanes // 8) * 1e6)
    envs.close()
    whole, alone = statistics.median(pool_cpu), statistics.median(bare_cpu)
    return {
        "lanes": lanes,
        "steps_per_s_wall": round(statistics.median(wall)),
        "steps_per_s_by_cpu": round(CORES * 1e6 / whole),
        "us_per_step": round(whole, 1),
        "us_per_step_of_owner": round(statistics.median(owner_cpu), 1),
        "us_per_step_bare": round(alone, 1),
        "us_overhead": round(
            statistics.median(a - b for a, b in zip(pool_cpu, bare_cpu, strict=True)), 1
        ),
    }


# --- Forks ---------------------------------------------------------------------------------------


def forks(args: argparse.Namespace) -> dict[str, Any]:
    """Restores of one moment in many lanes: in this process, and in a pool with one worker."""
    env = make_world()
    env.reset(seed=0)
    for _ in range(20):
        env.step("look")
    moment = env.snapshot()
    others = env.fork(32)
    here, pooled, wall, takes = [], [], [], []
    with sg.ForkPool(make_world, 33, workers=1, time_limit=None) as pool:
        pool.reset(0, seed=0)
        for _ in range(20):
            pool.step({0: "look"})
        handle = pool.snapshot(0)
        for turn in range(args.rounds + 2):
            begun = time.process_time()
            for _ in range(20):
                for other in others:
                    other.restore(moment)
            here.append((time.process_time() - begun) / 20 / 32)
            begun = time.process_time()
            for _ in range(200):
                env.snapshot()
            takes.append((time.process_time() - begun) / 200)
            start, used = time.perf_counter(), cpu_of(pool)
            for _ in range(20):
                pool.do({lane: Restore(handle) for lane in range(1, 33)})
            wall.append(20 * 32 / (time.perf_counter() - start))
            pooled.append((cpu_of(pool) - used) / 20 / 32)
            if turn < 2:
                here, pooled, wall, takes = [], [], [], []
    return {
        "forks_per_s_in_one_process": round(1 / statistics.median(here)),
        "forks_per_s_of_a_pool_by_cpu": round(1 / statistics.median(pooled)),
        "forks_per_s_of_a_pool_wall": round(statistics.median(wall)),
        "us_snapshot": round(statistics.median(takes) * 1e6, 1),
    }


# --- Trees ---------------------------------------------------------------------------------------


def tree(args: argparse.Namespace) -> dict[str, Any]:
    """A backbone with branch points against as many independent episodes as the tree has leaves."""
    kinds = [args.env] if args.env else ["alfworld", "repo"]
    return {kind: compare_tree(kind, args.rounds) for kind in kinds}


def compare_tree(kind: str, rounds: int) -> dict[str, Any]:
    leaves = 1 + len(BRANCHES) * (MEMBERS - 1)
    with tempfile.TemporaryDirectory() as folder:
        make, act = (repository if kind == "repo" else world)(Path(folder))
        with sg.ForkPool(make, leaves, workers=1) as pool:
            trees, apart = [], []
            for turn in range(rounds + 1):
                spent = timed(pool, partial(grow, pool, act))
                alone = timed(pool, partial(play_apart, pool, act, leaves))
                if turn > 0:
                    trees.append(spent)
                    apart.append(alone)
    steps_of_tree = DEPTH + sum((MEMBERS - 1) * (DEPTH - at) for at in BRANCHES)
    seconds = (
        [statistics.median(values) for values in zip(*trees, strict=True)],
        [statistics.median(values) for values in zip(*apart, strict=True)],
    )
    return {
        "leaves": leaves,
        "steps": [steps_of_tree, leaves * DEPTH],
        "seconds_wall": [round(part[0], 4) for part in seconds],
        "seconds_cpu": [round(part[1], 4) for part in seconds],
        "tree_over_independent_wall": round(seconds[0][0] / seconds[1][0], 3),
        "tree_over_independent_cpu": round(seconds[0][1] / seconds[1][1], 3),
        "tree_over_independent_steps": round(steps_of_tree / leaves / DEPTH, 3),
    }


def grow(pool: sg.ForkPool, act: Callable[[int, int], str]) -> None:
    root = pool.take()
    pool.reset(root, seed=0)
    lanes = [root]
    for depth in range(DEPTH):
        if depth in BRANCHES:
            lanes += pool.branch(root, MEMBERS - 1)
        pool.step({lane: act(lane, depth) for lane in lanes})
    pool.release(*lanes)


def play_apart(pool: sg.ForkPool, act: Callable[[int, int], str], leaves: int) -> None:
    pool.do({lane: Reset(0) for lane in range(leaves)})
    for depth in range(DEPTH):
        pool.step({lane: act(lane, depth) for lane in range(leaves)})
    pool.release(*range(leaves))


def world(folder: Path) -> tuple[Callable[[], gym.Env[Any, Any]], Callable[[int, int], str]]:
    del folder
    commands = ("look", "inventory", "go to fridge 1", "go to shelf 1", "examine shelf 1")
    return make_world, lambda lane, depth: commands[(lane + depth) % len(commands)]


def repository(folder: Path) -> tuple[Callable[[], gym.Env[Any, Any]], Callable[[int, int], str]]:
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
    return make, lambda lane, depth: commands[(lane + depth) % len(commands)]


# --- Faults --------------------------------------------------------------------------------------


def faults(args: argparse.Namespace) -> dict[str, Any]:
    """Episodes with and without kills of workers at random moments; they have to be equal."""
    before = below()
    make = partial(gym.make, ALFWORLD, source="synthetic", difficulty="easy", num_games=2)
    with sg.ForkPool(make, 8, workers=CORES, patience=20) as pool:
        start = time.perf_counter()
        undisturbed = play(pool, args.steps, args.seed, lambda share: None)
        calm = time.perf_counter() - start
        killer = Killer(pool, args.kills, args.seed)
        start = time.perf_counter()
        disturbed = play(pool, args.steps, args.seed, killer.act)
        stormy = time.perf_counter() - start
        restarts = len(pool.take_restarts())
        left_inside = len(below() - before)
    different = sum(a != b for a, b in zip(undisturbed, disturbed, strict=True))
    deadline = time.monotonic() + 30
    while (left := below() - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    return {
        "steps": args.steps,
        "kills": killer.done,
        "episodes": len(undisturbed),
        "episodes_that_differ": different,
        "lanes_rebuilt": restarts,
        "seconds": [round(calm, 2), round(stormy, 2)],
        "processes_with_two_workers": left_inside,
        "processes_left": len(left),
    }


class Killer:
    """Kills workers at random moments, so many over all steps."""

    def __init__(self, pool: sg.ForkPool, kills: int, seed: int) -> None:
        self.pool, self.kills, self.done = pool, kills, 0
        self.dice = random.Random(seed)

    def act(self, share: float) -> None:
        """Kill while fewer were killed than belong to this share of all steps."""
        while self.done < self.kills * share:
            pid = self.dice.choice(worker_pids(self.pool))
            subprocess.run(["sleep", f"{self.dice.random() * 0.01:.4f}"], check=True)
            os.kill(pid, signal.SIGKILL)
            self.done += 1


def play(pool: sg.ForkPool, steps: int, seed: int, disturb: Callable[[float], None]) -> list[Any]:
    """Play whole episodes in all lanes, for so many steps; what each of them showed."""
    episodes: list[Any] = []
    taken = 0
    while taken < steps:
        first = seed * 10_000 + len(episodes)
        results = pool.do({lane: Reset(first + lane) for lane in pool.lanes})
        shown = {lane: [result] for lane, result in results.items()}
        infos = {lane: info for lane, (_, info) in results.items()}
        dice = {lane: random.Random(first + lane) for lane in pool.lanes}
        while infos:
            pool.send(
                {
                    lane: Step(dice[lane].choice(info["admissible_commands"]))
                    for lane, info in infos.items()
                }
            )
            taken += len(infos)
            disturb(min(1.0, taken / steps))
            for lane, result in pool.wait(list(infos)).items():
                shown[lane].append(result)
                infos[lane] = result[4]
                if result[2] or result[3]:
                    del infos[lane]
        episodes += shown.values()
    return episodes


# --- Memory --------------------------------------------------------------------------------------


def memory(args: argparse.Namespace) -> dict[str, Any]:
    """64 live forks of a repository, each with a shell and a file of its own."""
    del args
    with tempfile.TemporaryDirectory() as folder:
        make, _ = repository(Path(folder))
        with sg.ForkPool(make, 64, workers=4) as pool:
            pool.reset(0, seed=0)
            pool.step({0: "export WHO=root; python3 -m py_compile *.py"})
            start = time.perf_counter()
            lanes = [0, *pool.branch(0, 63)]
            spent = time.perf_counter() - start
            results = pool.step({lane: f"echo $WHO {lane} > own; cat own" for lane in lanes})
            right = sum(result[0]["output"] == f"root {lane}\n" for lane, result in results.items())
            pids = below()
            used = processes.memory(pids)
    return {
        "live_forks": len(lanes),
        "right": right,
        "seconds_to_branch": round(spent, 2),
        "processes": len(pids),
        "mib": round(used / 2**20),
    }


# --- The machine ---------------------------------------------------------------------------------


def worker_pids(pool: sg.ForkPool) -> list[int]:
    return [post.link.pid for post in pool._crew.posts if post.link is not None]


def cpu_of(pool: sg.ForkPool) -> float:
    """Seconds of processor time of this process and all below."""
    others = sum(cpu_seconds(pid) for pid in below())
    return time.process_time() + others


def cpu_seconds(pid: int) -> float:
    """Seconds of a process, in nanoseconds' steps, with those of its children that ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        own = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0
    return own + sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")


def timed(pool: sg.ForkPool, play: Callable[[], None]) -> tuple[float, float]:
    """Seconds on the wall and of processor time."""
    start, used = time.perf_counter(), cpu_of(pool)
    play()
    return time.perf_counter() - start, cpu_of(pool) - used


def below() -> set[int]:
    """The ids of all processes below this one."""
    return {process.pid for process in processes.descendants(os.getpid())}


BENCHMARKS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "steps": steps,
    "forks": forks,
    "tree": tree,
    "faults": faults,
    "memory": memory,
}

if __name__ == "__main__":
    main()
