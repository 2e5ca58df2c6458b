"""Search with forks: branch where the first edit is made, keep the branch whose tests pass.

    python -m benchmarks.repo_best_of_n --out best_of_n.json
    python -m benchmarks.repo_best_of_n --tasks spans --branches 20

A scripted agent (`sandboxgym.sandboxes.repo.baseline`) studies the tree of each task that ships,
once. Then every edit it thinks of is tried in a branch of that moment, and what its checks accept
first is submitted: the example of the problem statement, and the tests that the agent sees. What a
branch would cost without forks, a new episode with the same study, is measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import gymnasium as gym

import sandboxgym as sg
from sandboxgym.sandboxes.repo.baseline import Agent
from sandboxgym.sandboxes.repo.tasks import shipped_tasks


def main() -> None:
    args = arguments()
    names = [row.instance_id for row in shipped_tasks() if args.tasks in row.instance_id]
    env = gym.make("sandboxgym/SWEBench-v0", rows="shipped")
    try:
        tasks = [best_of_n(env, name, args.branches) for name in names]
    finally:
        env.close()
    result = {
        "machine": {"python": platform.python_version(), "cpu": platform.machine()},
        "branches": args.branches,
        "solved": sum(task["reward"] == 1.0 for task in tasks),
        "accepted_but_wrong": sum(task["accepted"] and task["reward"] < 1.0 for task in tasks),
        "of": len(tasks),
        "branch_seconds": statistics.median(task["branch_seconds"] for task in tasks),
        "replay_seconds": statistics.median(task["replay_seconds"] for task in tasks),
        "tasks": tasks,
    }
    text = json.dumps(result, indent=2)
    print(text)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--branches", type=int, default=100, help="per task, at most")
    parser.add_argument("--tasks", default="", help="only those with this in their name")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def best_of_n(env: Any, name: str, branches: int) -> dict[str, Any]:
    """Search one task: each branch starts from the moment at which the study is done."""
    study(env, name)  # The first time the tree is built, which is not to be measured.
    started = time.perf_counter()
    agent, edits = study(env, name)
    replay = time.perf_counter() - started
    moment = sg.snapshot(env)
    costs = []
    accepted = False
    for edit in edits[:branches]:
        started = time.perf_counter()
        sg.restore(env, moment)
        costs.append(time.perf_counter() - started)
        if agent.attempt(edit):
            accepted = True
            break
    return {
        "name": name,
        "reward": agent.submit(),
        "accepted": accepted,
        "branches": len(costs),
        "branch_seconds": statistics.median(costs),
        "replay_seconds": replay,
    }


def study(env: Any, name: str) -> tuple[Agent, list[Any]]:
    observation, _ = env.reset(options={"instance_id": name})
    agent = Agent(env, observation["output"])
    return agent, agent.study()


if __name__ == "__main__":
    main()
