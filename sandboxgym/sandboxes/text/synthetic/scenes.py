"""Floor plans, and what the unseen split keeps for itself.

As in ALFRED a room has thirty numbered scenes, and games share them. Twenty-five are for the splits
``train`` and ``valid_seen``, five for ``valid_unseen``. No floor plan of the five equals one of
the twenty-five, and no object has to be brought to the same kind of receptacle in both: a checksum
decides for each floor plan and each such pairing on which side it falls.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from sandboxgym.sandboxes.text.synthetic.dice import Dice
from sandboxgym.sandboxes.text.synthetic.difficulty import Difficulty
from sandboxgym.sandboxes.text.synthetic.rooms import OPENABLE, Room

SPLITS = ("train", "valid_seen", "valid_unseen")
UNSEEN_SPLIT = "valid_unseen"

_UNSEEN_SCENES = 5
_MOST_DRAWS = 1000


def is_held_out(words: Iterable[str]) -> bool:
    """Whether this combination is for the unseen split alone; about one in five is."""
    return crc32("+".join(words).encode()) % 5 == 0


def scenes_of(room: Room, *, unseen: bool) -> range:
    """The numbers of the room's scenes that belong to the unseen split, or to the other two."""
    return room.scenes[-_UNSEEN_SCENES:] if unseen else room.scenes[:-_UNSEEN_SCENES]


def floor_plan(room: Room, scene: int, difficulty: Difficulty) -> tuple[str, ...] | None:
    """The kinds of receptacles in a scene, one entry for each receptacle, sorted.

    ``None`` if the difficulty leaves so few different floor plans that this scene's side has none.
    """
    dice = Dice("scene", scene, repr(difficulty))
    unseen = scene in scenes_of(room, unseen=True)
    for _ in range(_MOST_DRAWS):
        kinds = _draw(room, difficulty, dice)
        if is_held_out((room.name, *kinds)) == unseen:
            return kinds
    return None


def _draw(room: Room, difficulty: Difficulty, dice: Dice) -> tuple[str, ...]:
    kinds = list(room.always)
    left = dict(room.optional)

    def add(kind: str, times: int = 1) -> None:
        kinds.extend([kind] * times)
        left[kind] -= times

    many_doors = [
        kind for kind in left if kind in OPENABLE and left[kind] >= max(difficulty.lookalikes, 2)
    ]
    add(dice.choice(many_doors), difficulty.lookalikes)

    size = dice.between(*difficulty.receptacles)
    while len(kinds) < size:
        closed = sum(kind in OPENABLE for kind in kinds)
        wants_door = closed < difficulty.closed * size
        addable = [kind for kind in left if left[kind] > 0]
        fitting = [kind for kind in addable if (kind in OPENABLE) == wants_door]
        add(dice.choice(fitting or addable))
    return tuple(sorted(kinds))
