"""A look at the plain environment before any mechanism is tried: does it repeat itself?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass

import numpy as np

from sandboxgym.mechanisms.player import SEEDS, Explored, NotExactError, Player, Seen, expect
from sandboxgym.mechanisms.twins import AnyEnv
from sandboxgym.mechanisms.watch import Watch

STEPS = 16


@dataclass(frozen=True)
class Survey:
    """What two plain instances showed.

    Attributes:
        obstacle: Why there is nothing to probe with, or None.
        drift: How the same seed and actions gave another episode, or None where they never did.
        sharing: What all instances in one process have in common, and change, or None.
        effects: What the environment does outside of its memory, or None.
    """

    obstacle: str | None = None
    drift: str | None = None
    sharing: str | None = None
    effects: str | None = None


@dataclass(frozen=True)
class Episode:
    """An episode of random actions."""

    seed: int
    first: Seen
    later: Explored


def survey(make: Callable[[], AnyEnv]) -> Survey:
    """Play an instance, play it again, play another; each makes the same moves.

    Args:
        make: Makes a scratch instance.
    """
    try:
        with ExitStack() as scratch:
            env = scratch.enter_context(closing(make()))
            with Watch(env) as watch:
                episodes = [_record(Player(env), seed) for seed in SEEDS]
                drift = _repeat(Player(env), episodes, "the same instance")
            another = scratch.enter_context(closing(make()))
            drift = drift or _repeat(Player(another), episodes, "a fresh instance")
    except Exception as error:  # noqa: BLE001 - the environment may raise anything
        return Survey(f"a scratch instance failed ({type(error).__name__}: {error})")
    if not any(episode.later.moves for episode in episodes):
        why = episodes[0].later.stop or "the episode was over at once"
        return Survey(f"no random action could be taken ({why})")
    return Survey(drift=drift, sharing=watch.sharing, effects=watch.effects)


def _record(player: Player, seed: int) -> Episode:
    first = player.reset(seed)
    return Episode(seed, first, player.explore(first, STEPS, np.random.default_rng(seed)))


def _repeat(player: Player, episodes: list[Episode], where: str) -> str | None:
    """How an instance plays the episodes differently, or None."""
    for episode in episodes:
        here = f"seed {episode.seed} again in {where}"
        try:
            expect(episode.first, player.reset(episode.seed), f"{here}, reset")
            for step, move in enumerate(episode.later.moves):
                expect(episode.later.trace[step], player.make(move), f"{here}, step {step + 1}")
        except NotExactError as error:
            return str(error)
    return None
