"""Gymnasium's toy text environments with a table of transitions: frozen lake, taxi, cliff walking.

The table is thousands of entries that no step changes, and it differs where the map is drawn at
random. So the state has its hash, and an environment with another table is refused.
"""

from __future__ import annotations

import hashlib
import marshal
from typing import Any, ClassVar

from sandboxgym.core.errors import UncapturedStateError
from sandboxgym.sandboxes.classic.drawing import CANVASES, DrawnState

# By their names in all releases of Gymnasium since 1.0.
IMAGES = frozenset(
    f"{name}_{images}"
    for images, names in {
        "img": "agent background cliff destination goal goal_flag ground hole cracked_hole house "
        "ice letter_g letter_s mountain_bg near_cliff passenger start tree",
        "imgs": "cliff ice_crack taxi taxi_full",
    }.items()
    for name in names.split()
) | {"elf_images", "median_horiz", "median_vert"}


class TableState(DrawnState):
    """All attributes, but the table of transitions `P` by its hash alone."""

    covers_subclasses: ClassVar[bool] = True
    drawn: ClassVar[frozenset[str]] = CANVASES | IMAGES
    left_alone: ClassVar[frozenset[str]] = drawn | {"P"}

    def get(self, env: Any) -> dict[str, Any]:
        """Attributes, and the hash of the table."""
        return {"attributes": super().get(env), "table": _hash(env.P)}

    def set(self, env: Any, state: dict[str, Any]) -> None:
        """Put the attributes back, under the same table."""
        if state["table"] != _hash(env.P):
            raise UncapturedStateError(
                f"this {type(env).__name__} has another table of transitions than the one that was "
                "captured: make both with the same map (desc=..., map_name=...)"
            )
        super().set(env, state["attributes"])


def _hash(table: Any) -> str:
    # Marshalled in its version 2, equal values give equal bytes, whatever else refers to them.
    return hashlib.blake2b(marshal.dumps(table, 2), digest_size=16).hexdigest()
