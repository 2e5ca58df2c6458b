"""Texts from outside may hold halves of characters, which no encoding of text can write."""

from __future__ import annotations


def whole(text: str) -> str:
    """Put halves of characters that belong together, and replace those that stand alone."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
