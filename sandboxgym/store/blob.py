"""A blob: some bytes, what they are for, the blobs they refer to, and the hash of all of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import IntEnum

KEY_BYTES = 16


class Kind(IntEnum):
    """What a record of a store is: a blob, or a note about one."""

    ACTIONS = 1
    """A block of one list of a recipe; links to the block before it."""
    STATE = 2
    """What the environment's `get_state` gave."""
    FRAME = 3
    """A snapshot without its state and without the blocks of its recipe, which it links to."""
    ENTRY = 4
    """Note: the store has the snapshot of this frame; links to its state, if it has one."""
    DROPPED = 5
    """Note: this state was dropped to stay within the budget."""
    REMOVED = 6
    """Note: the snapshot of this frame was removed."""


BLOBS = frozenset({Kind.ACTIONS, Kind.STATE, Kind.FRAME})


@dataclass(frozen=True)
class Blob:
    """Bytes under the hash of their kind, links and content, so that none can change unnoticed."""

    kind: Kind
    links: tuple[bytes, ...]
    content: bytes
    key: bytes

    @classmethod
    def of(cls, kind: Kind, content: bytes, links: tuple[bytes, ...] = ()) -> Blob:
        """A blob with its key (BLAKE2b, 128 bits)."""
        state = hashlib.blake2b(digest_size=KEY_BYTES, person=b"sandboxgym store")
        state.update(bytes([kind, len(links)]) + b"".join(links))
        state.update(content)
        return cls(kind, links, content, state.digest())
