"""Times and sizes, as people read them."""

from __future__ import annotations


def digits(number: float) -> str:
    """A number with three digits, or with all before the point."""
    return f"{number:.3g}" if abs(number) < 999.5 else f"{number:.0f}"


def unit_of(seconds: float) -> tuple[str, float]:
    """The unit in which a time is read best, and how many seconds it is."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * size:
            return unit, size
    return "µs", 1e-6


def in_seconds(seconds: float) -> str:
    """A time with three digits at most."""
    unit, size = unit_of(seconds)
    return f"{digits(seconds / size)} {unit}"


def in_bytes(size: float) -> str:
    """A size with three digits at most."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= 0.9995 * factor:
            return f"{digits(size / factor)} {unit}"
    return f"{size:.0f} B"
