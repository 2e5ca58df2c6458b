"""Environments that hand out what they go on using."""

from __future__ import annotations

from . import mutant
from .correct import Ferry


@mutant("20")
class ObservesWithOneBuffer(Ferry):
    """Each observation overwrites the one before."""

    def __init__(self):
        super().__init__()
        self.buffer = super().observe()

    def observe(self):
        self.buffer[...] = super().observe()
        return self.buffer


@mutant("20")
class ReturnsItsOwnArray(Ferry):
    def observe(self):
        return self.depths


@mutant("20")
class ReturnsItsOwnList(Ferry):
    def report(self):
        return {"cargo": self.cargo}


@mutant("20")
class ReturnsAViewOfItsArray(Ferry):
    def observe(self):
        return self.depths[::-1].ravel()[::-1] if self.fuel < 0 else self.depths.T
