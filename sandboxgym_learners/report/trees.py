"""The kept trees of all runs as the page holds them: packed, and unpacked when one is asked for.

A tree is JSON, deflated, in base64, in a block of its own: the page opens at once however many
there are. Only what the reader needs to choose among them stands in plain sight.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from sandboxgym_learners.report.load import Run, SavedTree, load_tree
from sandboxgym_learners.report.tree_view import TreeView, summary
from sandboxgym_learners.tree import Group

MOST_BYTES = 32_000_000
"""What the trees may weigh; browsers open a page of that size from a disk without a thought."""


@dataclass(frozen=True, slots=True)
class PackedTrees:
    """The trees of a page.

    Attributes:
        summaries: What each is, in the order of their runs and updates.
        blocks: Each of them, packed.
        opening: The number of the one that the page opens with; the one that shows most.
        kept: How many the runs kept; more than there are here where they would weigh too much.
    """

    summaries: list[dict[str, Any]]
    blocks: list[str]
    opening: int
    kept: int


def packed_trees(groups: Mapping[str, Sequence[Run]], *, most: int = MOST_BYTES) -> PackedTrees:
    """Pack the kept trees: all of them, or evenly chosen ones where all would weigh too much.

    Raises:
        RunDirectoryError: One of them cannot be read.
    """
    files = [(run, path) for runs in groups.values() for run in runs for path in run.tree_files()]
    summaries, blocks, telling = [], [], []
    for run, path in files:
        saved = load_tree(run, path)
        summaries.append(summary(saved))
        blocks.append(pack(TreeView(saved.tree).to_json()))
        telling.append(shows(saved))
    opening = max(range(len(files)), key=lambda index: telling[index], default=0)
    chosen = _lighter([len(block) for block in blocks], most, always=opening)
    return PackedTrees(
        [summaries[index] for index in chosen],
        [blocks[index] for index in chosen],
        chosen.index(opening) if chosen else 0,
        len(files),
    )


def shows(saved: SavedTree) -> tuple[int, bool]:
    """How many branch points after a shared prefix teach something; then, whether the roots do."""
    points = sum(
        _teaches(visit.segment.branch)
        for visit in saved.tree.visits()
        if visit.segment.steps and visit.segment.branch is not None
    )
    return points, _teaches(saved.tree)


def pack(data: Any) -> str:
    """Data as deflated JSON in base64. Numbers that are not finite become null."""
    return base64.b64encode(zlib.compress(msgspec.json.encode(data), 9)).decode("ascii")


def unpack(block: str) -> Any:
    """What `pack` packed."""
    return msgspec.json.decode(zlib.decompress(base64.b64decode(block)))


def _lighter(weights: Sequence[int], most: int, *, always: int) -> list[int]:
    """Every tree, or every second, third, …: as many as weigh no more than `most`, one always."""
    for stride in range(1, len(weights) + 1):
        chosen = sorted({*range(0, len(weights), stride), always})
        if sum(weights[index] for index in chosen) <= most:
            return chosen
    return [always] if weights else []


def _teaches(group: Group) -> bool:
    return len({member.mean_return() for member in group.members}) > 1
