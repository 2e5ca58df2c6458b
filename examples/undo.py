"""An agent that can take back what it did: one more tool beside the one that acts.

    python examples/undo.py

`Tools` is what a language model would be given. The agent here is a plain program, so that the
example needs no model: it says what its hunch likes best, and takes that back where it learns
nothing from the answer. What it took back costs no steps of the episode: the limit is rewound too.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from household import hunch, make_env, task_of, useful

import sandboxgym as sg

_WALKS = {"go", "open"}


class Tools:
    """`act` and `undo`, as texts in and texts out."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.env = env
        self._moments: list[sg.Snapshot] = []
        self.said: list[str] = []
        self.over = False
        self.won = False

    def start(self, seed: int) -> str:
        """Begin an episode."""
        self._moments, self.said, self.over, self.won = [], [], False, False
        seen, self._info = self.env.reset(seed=seed)
        return str(seen)

    def act(self, command: str) -> str:
        """Say a command; the answer."""
        if self.over:
            return "The episode is over. You can only take back what you did."
        moment = sg.snapshot(self.env)
        seen, reward, terminated, truncated, self._info = self.env.step(command)
        self._moments.append(moment)
        self.said.append(command)
        self.over, self.won = terminated or truncated, reward > 0
        return str(seen)

    def undo(self) -> str:
        """Take back the latest command; what was seen before it."""
        if not self._moments:
            return "There is nothing to take back."
        seen, self._info = sg.restore(self.env, self._moments.pop())
        self.said.pop()
        self.over = self.won = False
        return str(seen)

    def commands(self) -> list[str]:
        """What can be said now, apart from looking."""
        return useful(self._info)


class Explorer:
    """Tries what it likes best, and takes back what leads nowhere new."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.acts = 0

    def solve(self, seed: int, *, depth: int, acts: int) -> bool:
        """Whether it wins within some commands, of which no more than `depth` stand at a time."""
        seen = self.tools.start(seed)
        task = task_of(seen)
        self.acts = 0
        soonest = {self._place(seen): 0}  # with how few commands it has been in each place
        untried = [self._liked(task)]  # at the start, and after each command that stands
        while untried and self.acts < acts:
            if not untried[-1] or len(self.tools.said) == depth:
                untried.pop()
                self.tools.undo()
                continue
            place = self._place(self.tools.act(untried[-1].pop()))
            self.acts += 1
            if self.tools.won:
                return True
            standing = len(self.tools.said)
            if soonest.get(place, depth + 1) <= standing:
                self.tools.undo()
            else:
                soonest[place] = standing
                untried.append(self._liked(task))
        return False

    def _liked(self, task: str) -> list[str]:
        """What may be worth saying now, what it likes best at the end."""
        walks = [c for c in self.tools.commands() if c.split()[0] in _WALKS]
        likes = [c for c in self.tools.commands() if c not in walks and hunch(task, c)]
        return sorted(walks + likes, key=lambda command: hunch(task, command))

    def _place(self, seen: str) -> tuple[Any, ...]:
        """What it knows a place by: what it reads and can say there, and what it did to things."""
        did = {c for c in self.tools.said if c.split()[0] not in _WALKS}
        return seen, frozenset(did), *self.tools.commands()


def main(games: int = 6) -> list[bool]:
    """Play some games; which were won."""
    tools = Tools(make_env())
    explorer = Explorer(tools)
    won = []
    for seed in range(games):
        won.append(explorer.solve(seed, depth=8, acts=3000))
        print(
            f"game {seed}: {'won' if won[-1] else 'not won'} after {explorer.acts} commands, of "
            f"which {explorer.acts - len(tools.said)} were taken back: {' > '.join(tools.said)}"
        )
    tools.env.close()
    return won


if __name__ == "__main__":
    main()
