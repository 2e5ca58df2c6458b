"""A furnished room: receptacles, and what lies in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Thing:
    """A receptacle or an object: the ``number``-th of the ``total`` of its kind in the room."""

    kind: str
    number: int
    total: int

    @property
    def name(self) -> str:
        """What the agent calls it, such as ``sinkbasin 1``."""
        return f"{self.kind.lower()} {self.number}"

    @property
    def id(self) -> str:
        """Its name in the PDDL problem.

        Engines number the things of a kind themselves, downwards in the order of their ids, and
        take the kind from what stands before ``_bar_``, with ``basin`` appended where that word
        occurs. The id is made so that they arrive at :attr:`name`.
        """
        rank = f"{self.total - self.number:02d}"
        if self.kind.endswith("Basin"):
            return f"{self.kind.removesuffix('Basin')}_bar_{rank}_bar_{self.kind}"
        return f"{self.kind}_bar_{rank}"


def number_things(kinds: Iterable[str]) -> list[Thing]:
    """One thing for each of ``kinds``, numbered within its kind in the order given."""
    kinds = list(kinds)
    totals = Counter(kinds)
    numbers: Counter[str] = Counter()
    things = []
    for kind in kinds:
        numbers[kind] += 1
        things.append(Thing(kind, numbers[kind], totals[kind]))
    return things


@dataclass(frozen=True)
class House:
    """The room as the game begins.

    Attributes:
        receptacles: All of them, closed where they have a door.
        contents: Every object, with the receptacle it starts in.
    """

    receptacles: tuple[Thing, ...]
    contents: dict[Thing, Thing]
