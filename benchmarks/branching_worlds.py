"""Two kinds of worlds in which it is known what comes before a branch point and what after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.enumerable_mdp import EnumerableMDP, Outcome, TabularPolicy


def errand_world(routine: int) -> tuple[EnumerableMDP, TabularPolicy]:
    """Routine decisions that the policy nearly masters, then four that it does not.

    One action of four is right each time. The episode pays 1 at its end if all were right; a
    mistake is not seen before. States 2i and 2i + 1 stand for decision i without and with one.
    """
    decisive, actions = 4, 4
    length = routine + decisive
    logits = np.zeros((2 * length + 1, actions))
    logits[: 2 * routine, 0] = 6.0
    logits[2 * routine : -1, 0] = 1.5
    end = 2 * length

    def goes_to(position: int, mistaken: bool) -> tuple[Outcome, ...]:
        last = position == length - 1
        reward = float(last and not mistaken)
        return (Outcome(1.0, reward, end if last else 2 * position + 2 + mistaken),)

    table: list[tuple[tuple[Outcome, ...], ...]] = []
    for position in range(length):
        for mistaken in (False, True):
            right, wrong = goes_to(position, mistaken), goes_to(position, True)
            table.append((right, *[wrong] * (actions - 1)))
    return EnumerableMDP((*table, ()), horizon=length), TabularPolicy(logits)


@dataclass(frozen=True, slots=True)
class NoiseSetting:
    """A world in which rewards are coin flips, and a tree in it."""

    before: int
    after: int
    noise_before: float
    noise_after: float
    roots: int
    siblings: int


NOISE = [
    NoiseSetting(2, 1, noise_before=0.5, noise_after=1.0, roots=2, siblings=8),
    NoiseSetting(2, 1, noise_before=0.2, noise_after=1.0, roots=4, siblings=4),
    NoiseSetting(1, 2, noise_before=1.0, noise_after=1.0, roots=2, siblings=4),
    NoiseSetting(4, 1, noise_before=0.2, noise_after=1.0, roots=2, siblings=8),
]


def noise_world(setting: NoiseSetting) -> tuple[EnumerableMDP, TabularPolicy]:
    """Whatever is done, each decision pays plus or minus the noise of its part."""
    length = setting.before + setting.after

    def coin(position: int) -> tuple[Outcome, ...]:
        size = setting.noise_before if position < setting.before else setting.noise_after
        return (Outcome(0.5, size, position + 1), Outcome(0.5, -size, position + 1))

    table = tuple((coin(position),) * 3 for position in range(length))
    logits = np.zeros((length + 1, 3))
    logits[: setting.before, 0] = 2.0
    logits[setting.before : length, 0] = 0.5
    return EnumerableMDP((*table, ()), horizon=length), TabularPolicy(logits)
