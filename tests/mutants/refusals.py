"""Environments that an error leaves changed."""

from __future__ import annotations

from sandboxgym.core.errors import InvalidActionError

from . import mutant
from .correct import Ferry


@mutant("23")
class BurnsFuelOnABadAction(Ferry):
    def validate(self, action):
        if not self.action_space.contains(action):
            self.fuel -= 1
            raise InvalidActionError(f"{action!r} is no course")


@mutant("23")
class DrawsBeforeItLooksAtTheAction(Ferry):
    def step(self, action):
        self.draw()
        return super().step(action)


@mutant("23")
class DefaultsForWhatAStateLacks(Ferry):
    """A damaged state is taken without a word, and the environment cannot go back."""

    stranded = False

    def set_state(self, state):
        self.stranded = self.stranded or "cargo" not in state
        super().set_state({"cargo": [], **state})
        if self.stranded:
            self.fuel = 1
