"""`replay`: any deterministic environment becomes forkable by doing again what was done.

Needs no cooperation from the environment and no knowledge of its wrappers: the whole stack is a
black box that is reset and stepped. The cost of a restore is linear in the depth of the episode.
"""

from __future__ import annotations

from sandboxgym.core.snapshot import Fidelity
from sandboxgym.mechanisms.foreign import ForeignEnv


class ReplayEnv(ForeignEnv):
    """Wraps a Gymnasium environment; snapshots hold the recipe and a hash of all that was seen."""

    @property
    def fidelity(self) -> Fidelity:
        """Memory of the environment, rebuilt by replay; exact because each replay is verified."""
        return Fidelity(mechanism="replay", cost="linear in depth")
