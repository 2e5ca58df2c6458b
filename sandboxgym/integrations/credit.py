"""Who gets the credit in a rollout tree, told as plain rows: nested leave-one-out.

Training libraries think in rows: one sequence of tokens each. A tree is its leaves, each a row that
knows the segments it went through. Rows that share their beginning share their first segments.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from sandboxgym.core.errors import SandboxGymError


class RolloutTreeError(SandboxGymError, ValueError):
    """Rows that are said to be the leaves of one tree do not fit together."""


class Segment(NamedTuple):
    """What one member of a group did, up to the next branch point or the end.

    Attributes:
        member: Tells the member from the others of its group.
        tokens: How many tokens of the row it takes, the environment's answers included.
        reward: What the environment paid on it.
    """

    member: Hashable
    tokens: int
    reward: float


Path = Sequence[Segment]
"""A leaf: its segments, from the root to the end."""


def nested_leave_one_out(leaves: Sequence[Path]) -> list[list[float]]:
    """The credit of every segment of every leaf: its weight times its advantage.

    With R(segment) = its own reward + the mean R of the members of the group at its end,

        advantage = R(segment) - mean R of the *other* members of its group
        weight    = product over the groups on its path of 1 / number of members

    so that Σ credit · ∇ log π over all tokens is an unbiased estimate of the policy gradient, where
    members are independent draws of the policy that learns. A segment that several leaves share
    gets its credit in the first of them and 0 in the others, so that it counts once.

    Args:
        leaves: The paths of all leaves of one tree. The order of equal members does not matter.

    Raises:
        RolloutTreeError: A path ends where another goes on, or two tell one segment differently.
    """
    credit = [[0.0] * len(leaf) for leaf in leaves]
    _assign(leaves, range(len(leaves)), 0, 1.0, credit)
    return credit


def mean_return(leaves: Sequence[Path]) -> float:
    """What the roots of a tree return on average: where a group opens, the mean over it."""
    return _assign(leaves, range(len(leaves)), 0, 1.0, [[0.0] * len(leaf) for leaf in leaves])


def per_token(leaf: Path, credit: Sequence[float]) -> list[float]:
    """The credit of every token of a row, given that of its segments."""
    return [c for segment, c in zip(leaf, credit, strict=True) for _ in range(segment.tokens)]


def _assign(
    leaves: Sequence[Path],
    rows: Iterable[int],
    depth: int,
    weight: float,
    credit: list[list[float]],
) -> float:
    """Credit a group, which is the segments of `rows` at `depth`, and return its mean R."""
    members = _members(leaves, rows, depth)
    share = weight / max(len(members), 1)
    values = []
    for member in members:
        segment = leaves[member[0]][depth]
        goes_on = len(leaves[member[0]]) > depth + 1
        below = _assign(leaves, member, depth + 1, share, credit) if goes_on else 0.0
        values.append(segment.reward + below)
    others = max(len(values) - 1, 1)
    for member, value in zip(members, values, strict=True):
        # Summing differences makes equal values give exactly 0.
        credit[member[0]][depth] = share * sum(value - other for other in values) / others
    return sum(values) / max(len(values), 1)


def _members(leaves: Sequence[Path], rows: Iterable[int], depth: int) -> list[list[int]]:
    """The rows of each member of a group."""
    members: dict[Hashable, list[int]] = {}
    for row in rows:
        if len(leaves[row]) <= depth:
            raise RolloutTreeError(f"row {row} ends after {depth} segments, where others go on")
        members.setdefault(leaves[row][depth].member, []).append(row)
    for first, *rest in members.values():
        for row in rest:
            _check_shared(leaves, first, row, depth)
    return list(members.values())


def _check_shared(leaves: Sequence[Path], first: int, row: int, depth: int) -> None:
    """Refuse two rows that do not share the segment that both name."""
    ours, theirs = leaves[first][depth], leaves[row][depth]
    if ours != theirs:
        raise RolloutTreeError(
            f"rows {first} and {row} tell the segment that they share at depth {depth} "
            f"differently: {ours} and {theirs}"
        )
    if len(leaves[first]) == depth + 1:
        raise RolloutTreeError(
            f"row {first} ends with a segment that row {row} shares: what is a leaf of its own "
            "needs a member of its own"
        )
