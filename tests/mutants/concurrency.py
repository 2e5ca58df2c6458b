"""Environments that are right as long as nothing else happens at the same time."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from . import mutant
from .correct import Ferry, ThreadedFerry


@mutant("26")
class WorksOutItsPositionInAClassVariable(ThreadedFerry):
    """Left alone between two lines of `step`, it is right."""

    scratch: ClassVar[dict[str, float]] = {}

    def step(self, action):
        self.validate(action)
        self.scratch["position"] = self.position
        time.sleep(0)
        self.position = self.scratch["position"]
        return super().step(action)


@mutant("26")
class ReachesForThePresentFerry(ThreadedFerry):
    """Each call says which instance is at work, as libraries with one current context do."""

    current: ClassVar[Ferry | None] = None

    def step(self, action):
        type(self).current = self
        return super().step(action)

    def draw(self):
        time.sleep(0)
        return Ferry.draw(self.current or self)

    def reset(self, *, seed=None, options=None):
        type(self).current = self
        return super().reset(seed=seed)


@mutant("27")
class UnpacksStatesIntoOneFile(Ferry):
    """A file of a fixed name, written and read by one process at a time in all other checks."""

    file = Path(tempfile.gettempdir(), "sandboxgym-tests-ferry")

    def set_state(self, state):
        self.file.write_text(str(os.getpid()))
        time.sleep(0.005)
        if self.file.read_text() != str(os.getpid()):
            raise RuntimeError("another process has unpacked a state")
        super().set_state(state)


@mutant("28")
class DeclaresASmallerSpace(Ferry):
    observation_space = spaces.Box(-np.inf, np.inf, (6,), np.float64)


@mutant("29")
class IsAnotherInChildrenOfMultiprocessing(Ferry):
    def draw(self):
        daemon = multiprocessing.current_process().name != "MainProcess"
        return super().draw() + float(daemon)
