"""Best-of-N, twice with the same number of steps: whole episodes, and pieces with rollback.

    python examples/best_of_n.py

Whole episodes: draw N, keep the best. With rollback: draw N short pieces from here, let a verifier
judge where each led, go on from the best, and return to where it was before if none is better.
The rollback is what a snapshot buys. The verifier here is the game's own planner, which says how
many commands are left; yours would be a reward model, or tests that pass.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import gymnasium as gym
from household import hunch, make_env, task_of, useful

import sandboxgym as sg


class Place(NamedTuple):
    """Where some commands led."""

    moment: sg.Snapshot
    info: dict[str, Any]
    won: bool

    @property
    def left(self) -> int:
        """The verifier's judgement: how many commands are left."""
        return 0 if self.won else len(self.info["expert_plan"])


class Sampler:
    """Draws commands by the hunch, and counts them."""

    def __init__(self, env: gym.Env[Any, Any], task: str, rng: random.Random) -> None:
        self.env, self.task, self.rng, self.steps = env, task, rng, 0

    def draw(self, start: Place, length: int) -> Place:
        """Go on from a place for some commands, or until the game is won."""
        _, info = sg.restore(self.env, start.moment)
        won = False
        for _ in range(length):
            commands = useful(info)
            weights = [1 + 3 * hunch(self.task, command) for command in commands]
            (command,) = self.rng.choices(commands, weights)
            _, _, won, _, info = self.env.step(command)
            self.steps += 1
            if won:
                break
        return Place(sg.snapshot(self.env), info, won)


def with_rollback(sampler: Sampler, start: Place, *, n: int, length: int, budget: int) -> bool:
    """Whether pieces of some commands, the best of N each time, win within a budget of steps."""
    here = start
    while not here.won and sampler.steps < budget:
        best = min((sampler.draw(here, length) for _ in range(n)), key=lambda place: place.left)
        if best.left < here.left:
            here = best
    return here.won


def whole_episodes(sampler: Sampler, start: Place, *, budget: int, length: int) -> bool:
    """Whether the best of as many whole episodes as the budget allows wins."""
    while sampler.steps < budget:
        if sampler.draw(start, length).won:
            return True
    return False


def main(games: int = 12, budget: int = 200) -> dict[str, int]:
    """Play some games both ways; how many each way won."""
    env = make_env(max_episode_steps=-1, expert_plan=True)
    won = {"whole episodes": 0, "with rollback": 0}
    for seed in range(games):
        seen, info = env.reset(seed=seed)
        start = Place(sg.snapshot(env), info, won=False)
        for way in won:
            sampler = Sampler(env, task_of(seen), random.Random(seed))
            if way == "with rollback":
                won[way] += with_rollback(sampler, start, n=4, length=3, budget=budget)
            else:
                won[way] += whole_episodes(sampler, start, length=20, budget=budget)
    for way, count in won.items():
        print(f"{way}: {count} of {games} games won within {budget} steps each")
    env.close()
    return won


if __name__ == "__main__":
    main()
