"""Environments whose digest says too much or too little."""

from __future__ import annotations

import gymnasium as gym

from sandboxgym.mechanisms import ReplayEnv

from . import mutant
from .correct import Ferry


class BlindReplay(ReplayEnv):
    """Replays rightly, but has no witness of what it replayed."""

    def get_state(self):
        return {}


@mutant("22")
def digest_of_nothing():
    return BlindReplay(gym.make("CartPole-v1"))


@mutant("22")
class CountsRestoresInItsState(Ferry):
    restores = 0

    def get_state(self):
        return {**super().get_state(), "restores": self.restores}

    def set_state(self, state):
        super().set_state(state)
        self.restores += 1


@mutant("22")
class StateHasItsAddress(Ferry):
    def get_state(self):
        return {**super().get_state(), "address": id(self)}
