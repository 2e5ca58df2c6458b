"""A look at the plain environment before any mechanism is tried: does it repeat itself?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from sandboxgym.mechanisms.player import Move, NotExactError, Player, Seen, expect
from sandboxgym.mechanisms.twins import AnyEnv
from sandboxgym.mechanisms.watch import Watch

SEEDS = (11, 12, 13)
STEPS = 16


@dataclass(frozen=True)
class Episode:
    """A recorded episode: `trace[0]` is the reset, `trace[i]` follows `actions[i - 1]`."""

    seed: int
    actions: list[Any]
    trace: list[Seen]


@dataclass(frozen=True)
class Survey:
    """What two plain instances showed.

    Attributes:
        episodes: Episodes of random actions.
        obstacle: Why there is nothing to probe with, or None.
        drift: How the same seed and actions gave another episode, or None where they never did.
        beside: What the environment does beside its own objects, in words, or None.
    """

    episodes: list[Episode]
    obstacle: str | None = None
    drift: str | None = None
    beside: str | None = None


def survey(make: Callable[[], AnyEnv]) -> Survey:
    """Play an instance, play it again, play another; each makes the same moves.

    Args:
        make: Makes a scratch instance.
    """
    try:
        with ExitStack() as scratch:
            first = scratch.enter_context(closing(make()))
            with Watch(first) as watch:
                episodes, stop = _record(Player(first))
                drift = _repeat(Player(first), episodes, "the same instance")
            second = scratch.enter_context(closing(make()))
            drift = drift or _repeat(Player(second), episodes, "a fresh instance")
    except Exception as error:  # noqa: BLE001 - the environment may raise anything
        return Survey([], f"a scratch instance failed ({type(error).__name__}: {error})")
    if not any(episode.actions for episode in episodes):
        return Survey([], f"no random action could be taken ({stop or 'the episode was over'})")
    return Survey(episodes, drift=drift, beside=watch.in_words())


def _record(player: Player) -> tuple[list[Episode], str]:
    episodes, stop = [], ""
    for seed in SEEDS:
        first = player.reset(seed)
        actions, stop = player.explore(first, STEPS, np.random.default_rng(seed))
        episodes.append(Episode(seed, actions, [first, *player.trace]))
    return episodes, stop


def _repeat(player: Player, episodes: list[Episode], where: str) -> str | None:
    """How an instance plays the episodes differently, or None."""
    for episode in episodes:
        try:
            expect(episode.trace[0], player.reset(episode.seed), f"{where}, seed {episode.seed}")
            for step, action in enumerate(episode.actions, start=1):
                found = player.make(Move(action))
                expect(episode.trace[step], found, f"{where}, seed {episode.seed}, step {step}")
        except NotExactError as error:
            return str(error)
    return None
