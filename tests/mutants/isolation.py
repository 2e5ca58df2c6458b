"""Environments whose forks see each other."""

from __future__ import annotations

from typing import Any, ClassVar

from . import mutant
from .correct import Ferry


@mutant("12", also=("13",))
class SharesAListOfTheClass(Ferry):
    """Always emptied and filled in place, which is right as long as there is one instance."""

    manifest: ClassVar[list[str]] = []

    def __init__(self):
        super().__init__()
        self.cargo = self.manifest

    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed)
        self.cargo = self.manifest
        self.cargo.clear()
        return result

    def set_state(self, state):
        super().set_state(state)
        self.cargo = self.manifest
        self.cargo[:] = state["cargo"]


def _no_ballast(ballast: list[str] = []) -> list[str]:  # noqa: B006 - that is the fault
    return ballast


@mutant("12", also=("13",))
class SharesADefaultArgument(Ferry):
    def __init__(self):
        super().__init__()
        self.ballast = _no_ballast()

    def reset(self, *, seed=None, options=None):
        self.ballast.clear()
        return super().reset(seed=seed)

    def step(self, action):
        self.validate(action)
        self.ballast.append("tide")
        return super().step(action)

    def report(self):
        return {**super().report(), "ballast": len(self.ballast)}

    def get_state(self):
        return {**super().get_state(), "ballast": self.ballast}

    def set_state(self, state):
        super().set_state(state)
        self.ballast[:] = state["ballast"]


@mutant("13", also=("12",))
class HandsItsListToTheFirstChild(Ferry):
    given = False
    inherited = False

    def spawn(self):
        child = super().spawn()
        if not self.given:
            self.given = True
            child.cargo = self.cargo
            child.inherited = True
        return child

    def set_state(self, state):
        own = self.cargo
        super().set_state(state)
        if self.inherited:
            own[:] = state["cargo"]
            self.cargo = own


@mutant("13")
class ClosesTheHarbourOfItsParent(Ferry):
    parent: Any = None
    open = True

    def spawn(self):
        child = super().spawn()
        child.parent = self
        return child

    def close(self):
        if self.parent is not None:
            self.parent.open = False

    def report(self):
        return {**super().report(), "open": self.open}
