"""Monte-Carlo tree search, with the environment as its own simulator.

    python examples/mcts.py

Other searches need a model of the world. Here a node holds a snapshot: a simulation restores it,
tries a command, plays on by the hunch for a while, and what that paid goes up the tree. When a
command has been chosen, the environment goes back to the present and takes it.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
from household import hunch, make_env, task_of, useful

import sandboxgym as sg

DISCOUNT = 0.95  # so that the shorter way to win is the better one
CURIOSITY = 0.3


@dataclass
class Node:
    """A moment of the game, and what the simulations that came through it have paid."""

    moment: sg.Snapshot
    prior: dict[str, float]  # how likely the hunch is to say each command here
    paid: float | None = None  # the reward that ended the game here, if it is over
    visits: int = 0
    total: float = 0.0
    children: dict[str, Node] = field(default_factory=dict)

    def favourite(self) -> str:
        """The command to simulate next: it was good so far, or it is likely and little tried."""

        def score(command: str) -> float:
            child = self.children.get(command)
            visits, mean = (child.visits, child.total / child.visits) if child else (0, 0.0)
            bonus = CURIOSITY * self.prior[command] * math.sqrt(self.visits + 1) / (1 + visits)
            return mean + bonus

        return max(self.prior, key=score)


class Search:
    """The tree for one game."""

    def __init__(self, env: gym.Env[Any, Any], task: str, rng: random.Random) -> None:
        self.env, self.task, self.rng = env, task, rng

    def weights(self, commands: list[str]) -> list[float]:
        """How likely each command is, as against the others."""
        return [1.0 + 3.0 * hunch(self.task, command) for command in commands]

    def node(self, info: dict[str, Any], paid: float | None = None) -> Node:
        """A node for where the environment is."""
        commands = useful(info)
        weights = self.weights(commands)
        prior = {c: w / sum(weights) for c, w in zip(commands, weights, strict=True)}
        return Node(sg.snapshot(self.env), prior, paid)

    def simulate(self, root: Node, *, horizon: int) -> None:
        """Walk down the tree, add a node, play on from there, and tell all nodes on the way."""
        path = [root]
        while path[-1].paid is None:
            command = path[-1].favourite()
            if command not in path[-1].children:
                path.append(self.expand(path[-1], command))
                break
            path.append(path[-1].children[command])
        leaf = path[-1]
        value = self.play_on(leaf, horizon) if leaf.paid is None else leaf.paid
        for node in reversed(path):
            node.visits += 1
            node.total += value
            value *= DISCOUNT

    def expand(self, node: Node, command: str) -> Node:
        """The node that a command leads to."""
        sg.restore(self.env, node.moment)
        _, reward, terminated, truncated, info = self.env.step(command)
        child = self.node(info, float(reward) if terminated or truncated else None)
        node.children[command] = child
        return child

    def play_on(self, node: Node, horizon: int) -> float:
        """What the hunch alone gets from here, in some steps; the environment is there already."""
        commands, weights = list(node.prior), list(node.prior.values())
        for step in range(1, horizon + 1):
            (command,) = self.rng.choices(commands, weights)
            _, reward, terminated, truncated, info = self.env.step(command)
            if terminated or truncated:
                return float(reward) * DISCOUNT**step
            commands = useful(info)
            weights = self.weights(commands)
        return 0.0


def play(
    env: gym.Env[Any, Any], seed: int, *, simulations: int = 300, horizon: int = 15
) -> tuple[list[str], float]:
    """Play the game of a seed to its end; the commands, and the return."""
    seen, info = env.reset(seed=seed)
    search = Search(env, task_of(seen), random.Random(seed))
    present = search.node(info)
    said: list[str] = []
    while present.paid is None:
        for _ in range(simulations):
            search.simulate(present, horizon=horizon)
        command = max(present.children, key=lambda c: present.children[c].visits)
        said.append(command)
        present = present.children[command]  # what was found out below it stays known
    sg.restore(env, present.moment)
    return said, present.paid


def main(games: int = 3) -> list[float]:
    """Play some games; their returns."""
    env = make_env(max_episode_steps=20)
    returns = []
    for seed in range(games):
        said, paid = play(env, seed)
        print(f"game {seed}: return {paid} by " + " > ".join(said))
        returns.append(paid)
    print(f"won {sum(paid > 0 for paid in returns)} of {games} games")
    env.close()
    return returns


if __name__ == "__main__":
    main()
