"""How hard a generated game is: the knobs, and four settings of them with a name."""

from __future__ import annotations

from dataclasses import dataclass

MOST_RECEPTACLES = 40
MOST_DISTRACTORS = 80
MOST_LOOKALIKES = 10
MOST_ERRANDS = 9


@dataclass(frozen=True)
class Difficulty:
    """The knobs of the generator.

    Attributes:
        receptacles: Fewest and most receptacles in the room.
        distractors: Objects that have nothing to do with the task; at most three of one kind, so a
            room with few kinds of objects may have less.
        closed: Share of receptacles with a door, as far as the kind of room allows.
        lookalikes: The room has at least so many closed receptacles of one kind, so that their
            names do not tell which one is worth opening.
        hidden: Probability that the object to be found starts behind a door.
        closed_goal: Probability that the receptacle to bring it to has a door.
        errands: Objects of one kind that have to be carried from one open place to another as
            well. They come first in the walkthrough, four plain steps each: a long routine before
            the search, which is the part that takes thought.
    """

    receptacles: tuple[int, int] = (12, 16)
    distractors: int = 14
    closed: float = 0.4
    lookalikes: int = 3
    hidden: float = 0.5
    closed_goal: float = 0.3
    errands: int = 0

    def __post_init__(self) -> None:
        fewest, most = self.receptacles
        if not 6 <= fewest <= most <= MOST_RECEPTACLES:
            raise ValueError(
                f"receptacles={self.receptacles}: give fewest and most, "
                f"from 6 (a kitchen cannot do with less) to {MOST_RECEPTACLES}"
            )
        for name in ("closed", "hidden", "closed_goal"):
            share = getattr(self, name)
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"{name}={share}: give a share between 0 and 1")
        for name, most in (
            ("distractors", MOST_DISTRACTORS),
            ("lookalikes", min(fewest - 5, MOST_LOOKALIKES)),
            ("errands", MOST_ERRANDS),
        ):
            number = getattr(self, name)
            if not 0 <= number <= most:
                raise ValueError(f"{name}={number}: give a number from 0 to {most}")

    @classmethod
    def named(cls, difficulty: Difficulty | str) -> Difficulty:
        """The difficulty itself, or the preset of this name."""
        if isinstance(difficulty, Difficulty):
            return difficulty
        if difficulty not in PRESETS:
            raise ValueError(f"no difficulty {difficulty!r}: choose among {', '.join(PRESETS)}")
        return PRESETS[difficulty]


PRESETS = {
    "easy": Difficulty(
        receptacles=(6, 9), distractors=5, closed=0.25, lookalikes=1, hidden=0.0, closed_goal=0.0
    ),
    "normal": Difficulty(),
    "hard": Difficulty(
        receptacles=(20, 26), distractors=28, closed=0.55, lookalikes=6, hidden=0.9, closed_goal=0.5
    ),
    "long": Difficulty(
        receptacles=(10, 13),
        distractors=6,
        closed=0.4,
        lookalikes=4,
        hidden=1.0,
        closed_goal=0.0,
        errands=5,
    ),
}
