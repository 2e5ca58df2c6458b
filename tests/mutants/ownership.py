"""Environments that hand out what they go on using."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from . import mutant
from .correct import Ferry

STACKED = ("17",)  # a wrapper that stacks observations finds the old ones changed


@mutant("20", also=STACKED)
class ObservesWithOneBuffer(Ferry):
    """Each observation overwrites the one before."""

    def __init__(self):
        super().__init__()
        self.buffer = super().observe()

    def observe(self):
        self.buffer[...] = super().observe()
        return self.buffer


@mutant("20", also=STACKED)
class ReturnsItsOwnArray(Ferry):
    observation_space = spaces.Box(-np.inf, np.inf, (2, 2), np.float64)

    def observe(self):
        return self.depths


@mutant("20")
class ReturnsItsOwnList(Ferry):
    def report(self):
        return {"cargo": self.cargo}


@mutant("20", also=STACKED)
class ReturnsAViewOfItsArray(ReturnsItsOwnArray):
    def observe(self):
        return self.depths[::-1].ravel()[::-1] if self.fuel < 0 else self.depths.T
