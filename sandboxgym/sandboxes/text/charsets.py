"""The characters that text worlds use, for their spaces."""

from __future__ import annotations

from gymnasium import spaces

_ASCII = "".join(map(chr, range(32, 127)))
_LATIN = bytes(range(0x80, 0x100)).decode("cp1252", errors="ignore")  # with dashes and quotes
_CONTROL = "\n\t\r"


def observations() -> spaces.Text:
    """What a game may say."""
    return spaces.Text(max_length=50_000, min_length=0, charset=_ASCII + _LATIN + _CONTROL)


def commands() -> spaces.Text:
    """What a player may type."""
    return spaces.Text(max_length=200, min_length=0, charset=_ASCII)
