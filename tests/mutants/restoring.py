"""Environments whose snapshots and restores are not exact within one process."""

from __future__ import annotations

import copy
import tempfile
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import gymnasium as gym

import sandboxgym as sg

from . import mutant
from .correct import Ferry


@mutant("04")
class SnapshotDrawsANumber(Ferry):
    def get_state(self):
        self.draw()
        return super().get_state()


@mutant("04")
class SnapshotSortsTheCargo(Ferry):
    def get_state(self):
        self.cargo.sort()
        return super().get_state()


class ShowsSteps(gym.Wrapper, gym.utils.RecordConstructorArgs):
    def __init__(self, env):
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.steps += 1
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated, truncated, {**info, "steps": self.steps}


sg.register_wrapper_state(
    ShowsSteps,
    lambda wrapper: {"steps": wrapper.steps},
    lambda wrapper, state: setattr(wrapper, "steps", state["steps"]),
)


@mutant("05")
def wrapper_without_a_view():
    return ShowsSteps(Ferry())


@mutant("06")
class ForgetsTheFuel(Ferry):
    def get_state(self):
        state = super().get_state()
        del state["fuel"]
        return state

    def set_state(self, state):
        super().set_state({**state, "fuel": self.fuel})


@mutant("06")
class StateIsItsConstructorsArguments(Ferry):
    """What `EzPickle` does: the copy is a new environment."""

    def get_state(self):
        return {"fuel": self.capacity}

    def set_state(self, state):
        self.__init__(**state)


@mutant("06")
class KeepsTheLogOnDisk(Ferry):
    def reset(self, *, seed=None, options=None):
        self.folder = tempfile.TemporaryDirectory()
        self.log = Path(self.folder.name, "log")
        self.log.write_text("")
        return super().reset(seed=seed)

    def step(self, action):
        with self.log.open("a") as log:
            log.write("x")
        return super().step(action)

    def report(self):
        return {**super().report(), "log": len(self.log.read_text())}


@mutant("07")
class CachesObservationsByFuel(Ferry):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def reset(self, *, seed=None, options=None):
        self.cache = {}
        return super().reset(seed=seed)

    def observe(self):
        if self.fuel not in self.cache:
            self.cache[self.fuel] = super().observe()
        return self.cache[self.fuel].copy()


@mutant("07")
class RemembersTheDirection(Ferry):
    @cached_property
    def direction(self):
        return round(self.harbour, 1)

    def reset(self, *, seed=None, options=None):
        self.__dict__.pop("direction", None)
        return super().reset(seed=seed)

    def report(self):
        return {**super().report(), "direction": self.direction}


@mutant("08")
class RestoresOnlyAfterAReset(Ferry):
    ready = False

    def reset(self, *, seed=None, options=None):
        self.ready = True
        return super().reset(seed=seed)

    def set_state(self, state):
        if self.ready:
            super().set_state(state)


@mutant("14")
class AppliesStatesAtTheNextStep(Ferry):
    pending = None

    def reset(self, *, seed=None, options=None):
        self.pending = None
        return super().reset(seed=seed)

    def set_state(self, state):
        self.pending = state

    def step(self, action):
        if self.pending is not None:
            super().set_state(self.pending)
            self.pending = None
        return super().step(action)


@mutant("14", also=("16",))
class RestoresASnapshotOnce(Ferry):
    """Each snapshot leaves one ticket; each restore takes one."""

    tickets: ClassVar[Counter[str]] = Counter()

    def get_state(self):
        state = super().get_state()
        self.tickets[repr(state)] += 1
        return state

    def set_state(self, state):
        if not self.tickets[repr(state)]:
            raise LookupError("this snapshot was used up")
        self.tickets[repr(state)] -= 1
        super().set_state(state)


@mutant("19")
class SavesItsStateAfterEachStep(Ferry):
    saved: dict = {}

    def step(self, action):
        result = super().step(action)
        self.saved = copy.deepcopy(super().get_state())
        return result

    def get_state(self):
        return self.saved

    def set_state(self, state):
        self.saved = state
        if state:
            super().set_state(copy.deepcopy(state))
