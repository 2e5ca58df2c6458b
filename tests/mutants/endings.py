"""Environments and wrappers whose episodes end otherwise after a restore."""

from __future__ import annotations

from gymnasium.wrappers import TimeLimit

import sandboxgym as sg
from sandboxgym.core.wrappers import rule_for

from . import mutant
from .correct import Ferry

LIMIT = 15


class UndeclaredLimit(TimeLimit):
    """Counts, and is declared to keep nothing."""


class RestartedLimit(TimeLimit):
    """Its rule starts the counter anew after each restore."""


def _restart(wrapper, state):
    wrapper._elapsed_steps = 0


_view = rule_for(TimeLimit(Ferry(), 1)).view
sg.stateless_wrapper(UndeclaredLimit, view=_view)
sg.register_wrapper_state(RestartedLimit, lambda wrapper: {}, _restart, view=_view)


@mutant("06")
def limit_without_state():
    return UndeclaredLimit(Ferry(), LIMIT)


@mutant("17")
def limit_that_starts_again():
    return RestartedLimit(Ferry(), LIMIT)


@mutant("18")
class StaysAshoreOnceItHasLanded(Ferry):
    """The end of an episode sets a flag that only a reset takes back."""

    landed = False

    def reset(self, *, seed=None, options=None):
        self.landed = False
        return super().reset(seed=seed)

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        self.landed = self.landed or terminated
        return obs, reward, self.landed, truncated, info


@mutant("18")
class LosesItsCargoAtTheEnd(Ferry):
    """A state that is taken after the end is put back without the cargo."""

    def set_state(self, state):
        super().set_state(state)
        if self.fuel == 0:
            self.cargo = []
