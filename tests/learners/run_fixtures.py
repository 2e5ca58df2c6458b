"""Invented run directories for tests of the report: the format is real, the numbers are not."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from sandboxgym_learners.advantages import nested_loo
from sandboxgym_learners.runlog import RunLog
from sandboxgym_learners.tree import Group, Segment, Step
from sandboxgym_learners.updates import Timing, Update

WORLD = {"env": "invented/World-v0", "arguments": ["difficulty=easy"]}
ACTIONS = ("go to desk 1", "go to shelf 2", "open drawer 3", "take mug 1 from desk 1", "look")


def make_run(
    folder: Path,
    algo: str,
    seed: int,
    *,
    updates: int = 40,
    skill: float = 0.3,
    tree: Group | None = None,
    config: dict[str, Any] | None = None,
    complete: bool = True,
) -> Path:
    dice = random.Random(f"{algo} {seed}")
    content = {
        "config": {"algo": algo, "seed": seed, "budget": 40000, "world": WORLD, **(config or {})},
        "versions": {"torch": "2.0 (invented)"},
    }
    with RunLog.create(folder, content, tensorboard=False) as log:
        log.write(Update(0, eval_success=0.2), Timing(0, 3.0, 0.0, 0.0, 0.0, 2.0, 1.0))
        for number in range(1, updates + 1):
            timing = Timing(number, 1.0, 0.4, 0.2, 0.05, 0.3, 0.0)
            log.write(_update(number, algo, skill, dice), timing)
            if number % 10 == 0:
                forks = 8 if algo == "bpo" else 0
                kept = tree or rollout_tree(dice, forks=forks)
                log.write_tree(number, algo=algo, task=f"task {number}", tree=kept)
    if complete:
        (folder / "policy").mkdir()
    return folder


def _update(number: int, algo: str, skill: float, dice: random.Random) -> Update:
    branching = algo == "bpo"
    success = 0.2 + skill * (1 - math.exp(-number / 15)) + dice.gauss(0, 0.03)
    return Update(
        number,
        compute=1000.0 * number + dice.random() * 100,
        env_steps=900 * number,
        generated_tokens=3000 * number,
        forward_tokens=90000 * number,
        returns=64 * number,
        restores=56 * number if branching else 0,
        success=_share(success + dice.gauss(0, 0.08)),
        mean_return=success,
        episode_steps=20.0,
        entropy=1.2 * math.exp(-number / 40) + dice.gauss(0, 0.05),
        threshold=0.8 if branching else None,
        branch_points=4 if branching else None,
        same_action_share=_share(0.1 + number / 100 + dice.gauss(0, 0.05)) if branching else None,
        constant_share=_share(0.3 + number / 100 + dice.gauss(0, 0.08)),
        eta=0.4 + dice.gauss(0, 0.02) if branching else None,
        remaining=0.3 if branching else None,
        predicted_efficiency=0.8 + dice.gauss(0, 0.05) if branching else None,
        grad_norm=0.5,
        grad_variance=math.exp(dice.gauss(0.2 if branching else 0.9, 0.4)),
        grad_cost=250.0,
        eval_success=success if number % 5 == 0 else None,
        eval_steps=18.0 if number % 5 == 0 else None,
    )


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def step(depth: int, dice: random.Random, *, prompt: str = "") -> Step:
    choice = dice.randrange(len(ACTIONS))
    seen = f"Task: put a mug on the desk.\nSteps taken: {depth}\nYou see: room {depth}\nAction:"
    return Step(
        prompt=prompt or seen,
        candidates=ACTIONS,
        choice=choice,
        action=ACTIONS[choice],
        logprob=-dice.random() * 2,
        entropy=dice.random() * 1.6,
        reward=0.0,
        observation=f"You are at {ACTIONS[choice]} ({depth}).",
        depth=depth,
    )


def episode(first: int, last: int, dice: random.Random, *, won: bool | None = None) -> Segment:
    won = dice.random() < 0.4 if won is None else won
    steps = [step(depth, dice) for depth in range(first, last + 1)]
    steps[-1].reward = float(won)
    return Segment(steps, success=won)


def rollout_tree(dice: random.Random, *, roots: int = 2, forks: int = 8, length: int = 30) -> Group:
    """Roots that branch once into `forks` siblings; without forks, eight plain episodes."""
    if forks == 0:
        flat = Group([episode(0, dice.randrange(8, length), dice) for _ in range(8)], planned=8)
        nested_loo(flat)
        return flat
    members = []
    for root in range(roots):
        at = dice.randrange(3, 12)
        won = False if root == roots - 1 else None
        siblings = [
            episode(at, dice.randrange(at + 2, length), dice, won=won) for _ in range(forks)
        ]
        members.append(
            Segment(
                [step(depth, dice) for depth in range(at)], branch=Group(siblings, planned=forks)
            )
        )
    tree = Group(members, planned=roots)
    nested_loo(tree)
    return tree
