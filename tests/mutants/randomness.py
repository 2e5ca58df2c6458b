"""Environments with random numbers that are not captured, or do not start anew."""

from __future__ import annotations

import random

import numpy as np
from gymnasium.utils import seeding

from . import mutant
from .correct import Ferry, OwnGenerator


@mutant("16", also=("06",))
class ForgetsItsGenerator(OwnGenerator):
    def get_state(self):
        state = super().get_state()
        del state["own"]
        return state

    def set_state(self, state):
        super().set_state({**state, "own": self.own.bit_generator.state})


@mutant("16", also=("06",))
class DrawsFromNumpysGlobalGenerator(Ferry):
    def reset(self, *, seed=None, options=None):
        np.random.seed(seed)
        return super().reset(seed=seed)

    def draw(self):
        return float(np.random.normal())


@mutant("16", also=("06",))
class DrawsFromTheModuleRandom(Ferry):
    def reset(self, *, seed=None, options=None):
        random.seed(seed)
        return super().reset(seed=seed)

    def draw(self):
        return random.gauss(0, 1)


@mutant("16")
class IgnoresANewSeed(Ferry):
    def reseed(self, seed):
        pass


@mutant("16")
class ReseedsTheWrongGenerator(OwnGenerator):
    def reseed(self, seed):
        Ferry.reseed(self, seed)


@mutant("16")
class ReseedsBehindAnAlias(Ferry):
    def reset(self, *, seed=None, options=None):
        self.np_random = seeding.np_random(seed)[0] if seed is not None else self.np_random
        self.current = self.np_random
        return super().reset(seed=None)

    def draw(self):
        return float(self.current.normal())

    def set_state(self, state):
        super().set_state(state)
        self.current = self.np_random

    def reseed(self, seed):
        self.np_random = seeding.np_random(seed)[0]
