"""Environments whose snapshots do not survive files, replays, processes or their maker."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from gymnasium import spaces

from . import mutant
from .correct import GOODS, Ferry


@mutant("09")
class StateIsAKeyOfATable(Ferry):
    table: ClassVar[dict[str, Any]] = {}

    def get_state(self):
        state = copy.deepcopy(super().get_state())
        key = repr(state)
        self.table[key] = state
        return {"key": key}

    def set_state(self, state):
        super().set_state(copy.deepcopy(self.table[state["key"]]))


@mutant("09")
class StateListsASetInHashOrder(Ferry):
    def get_state(self):
        return {**super().get_state(), "market": list(set(GOODS))}


@mutant("10", also=("02", "17"))
class TextThatIsNoUnicode(Ferry):
    observation_space = spaces.Text(20)

    def observe(self):
        return b"caf\xe9 ".decode("utf-8", "surrogateescape") + f"{self.position:.3f}"


@mutant("11")
class EpisodesGetHarder(Ferry):
    """A seeded reset starts over, but an unseeded one depends on how many there were."""

    episodes = 0

    def reset(self, *, seed=None, options=None):
        self.episodes = 0 if seed is not None else self.episodes + 1
        result = super().reset(seed=seed)
        self.depths += self.episodes
        return result


@mutant("15", also=("09",))
class StateIsFreedWithItsMaker(StateIsAKeyOfATable):
    table: ClassVar[dict[str, Any]] = {}

    def close(self):
        self.table.clear()
