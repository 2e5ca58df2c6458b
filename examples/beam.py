"""Beam search over commands: of all that can be said next, keep the most promising moments.

    python examples/beam.py

Every line of the beam is a snapshot. To try a command after it costs one restore and one step,
however long the line is, and lines that lead to the same state are told by its digest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
from household import hunch, make_env, task_of, useful

import sandboxgym as sg


class Line(NamedTuple):
    """Commands said so far, the moment they led to, and what can be said there."""

    said: tuple[str, ...]
    moment: sg.Snapshot
    commands: list[str]
    won: bool

    def promise(self, task: str) -> int:
        """The hunches of what was said; saying a thing twice promises no more than once."""
        return sum(hunch(task, command) for command in set(self.said))


def continuations(env: gym.Env[Any, Any], line: Line) -> Iterator[Line]:
    """The line with each of its next commands."""
    for command in line.commands:
        sg.restore(env, line.moment)
        _, reward, *_, info = env.step(command)
        yield Line((*line.said, command), sg.snapshot(env), useful(info), won=reward > 0)


def search(env: gym.Env[Any, Any], seed: int, *, width: int = 24, depth: int = 12) -> Line | None:
    """The first line that wins the game of a seed, or None; the environment is left there."""
    seen, info = env.reset(seed=seed)
    task = task_of(seen)
    start = Line((), sg.snapshot(env), useful(info), won=False)
    beam, known = [start], {start.moment.digest}
    for _ in range(depth):
        found = []
        for line in beam:
            for longer in continuations(env, line):
                if longer.won:
                    return longer
                if longer.moment.digest not in known:
                    known.add(longer.moment.digest)
                    found.append(longer)
        beam = sorted(found, key=lambda line: -line.promise(task))[:width]
    return None


def main(games: int = 6) -> list[Line | None]:
    """Search in some games; what was found."""
    # No limit of steps: its count would make two equal states at different depths two states.
    env = make_env(max_episode_steps=-1)
    lines = []
    for seed in range(games):
        line = search(env, seed)
        print(f"game {seed}: " + ("not won" if line is None else " > ".join(line.said)))
        lines.append(line)
    print(f"won {sum(line is not None for line in lines)} of {games} games")
    env.close()
    return lines


if __name__ == "__main__":
    main()
