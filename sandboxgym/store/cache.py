"""The contents that were used last, in memory, within a budget."""

from __future__ import annotations

from collections import OrderedDict

from sandboxgym.store.blob import Blob


class BlobCache:
    """Keeps blobs, and forgets the least recently used ones beyond `budget_bytes`."""

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.bytes = 0
        self._blobs: OrderedDict[bytes, Blob] = OrderedDict()

    def get(self, key: bytes) -> Blob | None:
        """The blob, if it is here."""
        blob = self._blobs.get(key)
        if blob is not None:
            self._blobs.move_to_end(key)
        return blob

    def add(self, blob: Blob) -> None:
        """Keep a blob."""
        self.forget(blob.key)
        self._blobs[blob.key] = blob
        self.bytes += len(blob.content)
        while self.bytes > self.budget_bytes:
            _, oldest = self._blobs.popitem(last=False)
            self.bytes -= len(oldest.content)

    def forget(self, key: bytes) -> None:
        """Do without a blob, if it is here."""
        blob = self._blobs.pop(key, None)
        if blob is not None:
            self.bytes -= len(blob.content)
