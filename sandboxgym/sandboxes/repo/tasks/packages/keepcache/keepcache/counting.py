"""How well a cache does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counts:
    """What happened to a cache so far."""

    hits: int = 0
    misses: int = 0
    dropped: int = 0


def hit_rate(counts: Counts) -> float:
    """The share of look-ups that found something; 0 where there was none yet."""
    asked = counts.hits + counts.misses
    return counts.hits / asked if asked else 0.0
