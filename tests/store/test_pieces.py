from __future__ import annotations

import numpy as np
import pytest

from sandboxgym.core import codec
from sandboxgym.core.errors import SnapshotCorruptError
from sandboxgym.store.blob import Blob, Kind
from sandboxgym.store.pieces import BLOCK, cut, join
from tests.store.moments import assert_same, walk

LIMIT = 2**20
MOMENT = walk(2 * BLOCK + 1)[-1]


def joined(blobs, frame, state=None):
    by_key = {blob.key: blob for blob in blobs}
    return join(frame.key, state, lambda key, limit: by_key[key], LIMIT)


def test_what_was_cut_is_joined_again():
    pieces = cut(MOMENT, LIMIT)
    assert len(pieces.blocks) == 2
    assert_same(joined(pieces.blobs, pieces.frame, pieces.state.key), MOMENT)


def frame_with(pieces, **changes):
    tree = codec.decode(pieces.frame.content)
    for path, value in changes.items():
        if path == "actions":
            tree["recipe"]["actions"] = value
        else:
            tree[path] = value
    return Blob.of(Kind.FRAME, codec.encode(tree), pieces.frame.links)


@pytest.mark.parametrize(
    "changes",
    [
        {"blocks": []},
        {"blocks": ["actions", "moved"]},
        {"blocks": ["nothing"]},
        {"blocks": [3]},
        {"blocks": None},
        {"blocks": [["actions"]]},
        {"recipe": np.zeros(3)},
        {"recipe": None},
        {"actions": np.zeros((1000, 1))},
        {"actions": "text"},
    ],
)
def test_a_frame_that_does_not_fit_its_blocks_is_refused(changes):
    pieces = cut(MOMENT, LIMIT)
    frame = frame_with(pieces, **changes)
    with pytest.raises(SnapshotCorruptError):
        joined([*pieces.blobs, frame], frame)


@pytest.mark.parametrize("content", [None, "text", {"x": 1}, np.zeros((1000, 1)), 3])
def test_a_block_that_is_no_list_is_refused(content):
    pieces = cut(MOMENT, LIMIT)
    block = Blob.of(Kind.ACTIONS, codec.encode(content))
    frame = Blob.of(Kind.FRAME, pieces.frame.content, (block.key,))
    with pytest.raises(SnapshotCorruptError):
        joined([block, frame], frame)


def test_a_frame_that_is_no_tree_is_refused():
    for tree in (None, np.zeros(3), [1], "x", {}):
        frame = Blob.of(Kind.FRAME, codec.encode(tree))
        with pytest.raises(SnapshotCorruptError):
            joined([frame], frame)


def test_a_blob_of_another_kind_is_refused():
    state = Blob.of(Kind.STATE, codec.encode({}))
    with pytest.raises(SnapshotCorruptError, match="is no FRAME"):
        joined([state], state)


def test_more_bytes_than_allowed_in_all_are_not_read():
    pieces = cut(MOMENT, LIMIT)
    asked = []

    def read(key, limit):
        asked.append(limit)
        return next(blob for blob in pieces.blobs if blob.key == key)

    join(pieces.frame.key, pieces.state.key, read, LIMIT)
    sizes = [len(blob.content) for blob in (pieces.frame, *pieces.blocks[::-1])]
    assert asked == [LIMIT - sum(sizes[:i]) for i in range(len(sizes) + 1)]
