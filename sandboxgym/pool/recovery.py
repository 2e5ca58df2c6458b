"""How a lane comes to be where it is, so that another worker can bring an environment there too.

A moment refers to the one before it, as in a tree: lanes and handles that have a past in common
share it. A tree of moments has few kinds of acts: "begin" (a seeded reset), "load" (a snapshot),
"step" and "reseed".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sandboxgym.core.digest import Difference, first_difference
from sandboxgym.core.errors import RestoreMismatchError
from sandboxgym.core.tensors import plain
from sandboxgym.pool.messages import decode


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A moment of a lane: the one before it, and the act that led from there to here.

    Attributes:
        act: The act, encoded.
        before: The moment before; None where the act depends on nothing before it.
        step: Number of actions since the reset.
    """

    act: bytes
    before: Moment | None = None
    step: int = 0

    def after(self, act: bytes, *, steps: int = 1) -> Moment:
        """The moment to which an act leads from here."""
        return Moment(act, self, self.step + steps)

    def path(self) -> list[bytes]:
        """All acts that lead here, in order."""
        acts = []
        moment: Moment | None = self
        while moment is not None:
            acts.append(moment.act)
            moment = moment.before
        acts.reverse()
        return acts


@dataclass(frozen=True)
class LaneRestarted:
    """A lane lost its worker, and goes on in another one as if nothing had happened.

    Attributes:
        lane: Its number.
        reason: What became of the worker.
        step: The step of the episode at which it goes on.
    """

    lane: int
    reason: str
    step: int


def check_rebuilt(lost: bytes, rebuilt: bytes) -> None:
    """Refuse a rebuilt lane that has not seen what the lost one had seen.

    Raises:
        RestoreMismatchError: They differ; the message names the first difference.
    """
    if lost == rebuilt:
        return
    difference = _difference(plain(decode(lost)), plain(decode(rebuilt)))
    if difference is not None:
        raise RestoreMismatchError(
            f"it lost its worker, and doing the same again in another one came out differently: "
            f"{difference}. The environment is not deterministic: run `sandboxgym "
            "check` on it; reset the lane, or restore a snapshot, to go on"
        )


def _difference(lost: list[Any], rebuilt: list[Any]) -> Difference | None:
    """The first difference, but for the duration that `RecordEpisodeStatistics` puts into infos."""
    for seen in (lost, rebuilt):
        episode = seen[4].get("episode")
        if isinstance(episode, dict):
            episode.pop("t", None)
    return first_difference(lost, rebuilt)
