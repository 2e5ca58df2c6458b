"""Environments that do not repeat themselves."""

from __future__ import annotations

import os
import time
from typing import ClassVar

import numpy as np

import sandboxgym as sg

from . import mutant
from .correct import GOODS, Ferry


@mutant("00")
class RaisesOnTheThirdStep(Ferry):
    def step(self, action):
        if self.fuel == self.capacity - 2:
            raise RuntimeError("the engine stopped")
        return super().step(action)


@mutant("00")
class NamesNoState(sg.ForkableEnv):
    observation_space = Ferry.observation_space
    action_space = Ferry.action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(7), {}

    def step(self, action):
        return np.zeros(7), 0.0, False, False, {}


@mutant("01")
class TimeInInfo(Ferry):
    def report(self):
        return {**super().report(), "time": time.perf_counter()}


@mutant("01")
class NeverSeedsItsGenerator(Ferry):
    def __init__(self):
        super().__init__()
        self.current = np.random.default_rng()

    def draw(self):
        return float(self.current.normal())


@mutant("01")
class CountsEpisodesOnTheClass(Ferry):
    episodes: ClassVar[int] = 0

    def reset(self, *, seed=None, options=None):
        type(self).episodes += 1
        return super().reset(seed=seed)

    def report(self):
        return {**super().report(), "episode": self.episodes}


farthest = 0.0


@mutant("01")
class KeepsARecordInAModuleGlobal(Ferry):
    def report(self):
        global farthest
        farthest = max(farthest, abs(self.position))
        return {**super().report(), "record": farthest}


@mutant("02")
class ListsASetInHashOrder(Ferry):
    def report(self):
        return {**super().report(), "market": list(set(GOODS))}


@mutant("02")
class ProcessIdInInfo(Ferry):
    def report(self):
        return {**super().report(), "pid": os.getpid()}


@mutant("03")
class IgnoresTheSeedOfReset(Ferry):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None if seed is None else 1)
