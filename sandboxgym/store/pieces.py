"""A snapshot cut into blobs, so that snapshots of one episode share what they have in common.

A snapshot is a *frame* (all but the rest), a *state*, and for each list of its recipe that is long
a chain of *blocks* of 64 items. As an episode goes on, its recipe only grows at the end, so two
snapshots of it share all blocks but the last. A frame is named by its content without the state:
the key of a snapshot is the same after its state was dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandboxgym.core import codec
from sandboxgym.core.errors import SnapshotCorruptError, StateEncodingError
from sandboxgym.core.msgpack_size import MAX_NODES
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.store.blob import Blob, Kind

BLOCK = 64
MAX_BLOCKS = MAX_NODES // BLOCK

Reader = Callable[[bytes, int], Blob]
"""Reads the blob of a key, if its content has at most so many bytes."""


@dataclass(frozen=True)
class Pieces:
    """The blobs of one snapshot."""

    frame: Blob
    blocks: tuple[Blob, ...]
    state: Blob | None

    @property
    def blobs(self) -> list[Blob]:
        """All of them, what is referred to before what refers to it."""
        return [*self.blocks, *([self.state] if self.state else []), self.frame]


def cut(snapshot: Snapshot, max_bytes: int) -> Pieces:
    """Cut a snapshot into blobs.

    Raises:
        StateEncodingError: It is not plain data, or `join` would refuse it for its size.
    """
    tree = snapshot.as_tree()
    state = tree.pop("state")
    recipe = dict(tree["recipe"])
    tree["recipe"] = recipe
    tree["blocks"] = []
    blocks: list[Blob] = []
    heads: list[bytes] = []
    for name, items in recipe.items():
        if type(items) is list and len(items) > BLOCK:
            whole = (len(items) - 1) // BLOCK * BLOCK
            blocks += _chain(items[:whole])
            heads.append(blocks[-1].key)
            tree["blocks"].append(name)
            recipe[name] = items[whole:]
    frame = Blob.of(Kind.FRAME, codec.encode(tree), tuple(heads))
    kept = None if state is None else Blob.of(Kind.STATE, codec.encode(state))
    pieces = Pieces(frame, tuple(blocks), kept)
    _check_readable(pieces, max_bytes)
    return pieces


def join(frame: bytes, state: bytes | None, read: Reader, max_bytes: int) -> Snapshot:
    """Put a snapshot together from the blobs that `cut` made of it.

    Args:
        frame: Key of the frame.
        state: Key of the state, or None to leave it out.
        read: Reads a blob.
        max_bytes: Refuse a snapshot whose blobs have more bytes in all.

    Raises:
        SnapshotCorruptError: The blobs make no snapshot, or one over the limits.
        StoreError: What `read` raises.
    """
    left = max_bytes

    def take(key: bytes, kind: Kind) -> Blob:
        nonlocal left
        blob = read(key, left)
        if blob.kind is not kind:
            raise SnapshotCorruptError(f"{key.hex()} is no {kind.name}, but a {blob.kind.name}")
        left -= len(blob.content)
        return blob

    top = take(frame, Kind.FRAME)
    chains: list[list[bytes]] = []
    for head in top.links:
        chain: list[bytes] = []
        following: tuple[bytes, ...] = (head,)
        while following:
            block = take(following[0], Kind.ACTIONS)
            chain.append(block.content)
            following = block.links
            if len(chain) > MAX_BLOCKS:
                raise SnapshotCorruptError(f"the recipe has more than {MAX_BLOCKS} blocks")
        chains.append(chain[::-1])
    documents = [top.content, *(block for chain in chains for block in chain)]
    if state is not None:
        documents.append(take(state, Kind.STATE).content)
    tree, *rest = codec.decode_all(documents)
    return Snapshot.from_tree(_put_together(tree, rest, [len(chain) for chain in chains], state))


def _chain(items: list[Any]) -> list[Blob]:
    blocks: list[Blob] = []
    for start in range(0, len(items), BLOCK):
        links = (blocks[-1].key,) if blocks else ()
        blocks.append(Blob.of(Kind.ACTIONS, codec.encode(items[start : start + BLOCK]), links))
    return blocks


def _check_readable(pieces: Pieces, max_bytes: int) -> None:
    contents = [blob.content for blob in pieces.blobs]
    total = sum(map(len, contents))
    if total > max_bytes:
        raise StateEncodingError(
            f"the snapshot has {total} bytes, over the store's limit of {max_bytes}: open the "
            "store with a larger max_bytes"
        )
    codec.check_readable(contents)


def _put_together(tree: Any, parts: list[Any], lengths: list[int], state: bytes | None) -> Any:
    """The tree that `Snapshot.from_tree` takes, of the frame and the other decoded blobs."""
    try:
        names = tree.pop("blocks")
        if len(names) != len(lengths):
            raise SnapshotCorruptError("a frame names other blocks than it links to")
        for name, length in zip(names, lengths, strict=True):
            items = [item for block in parts[:length] for item in block]
            tree["recipe"][name] = items + tree["recipe"][name]
            del parts[:length]
        tree["state"] = parts[0] if state is not None else None
    except (AttributeError, KeyError, TypeError) as error:
        raise SnapshotCorruptError(f"a frame lacks a part ({error!r})") from error
    return tree
