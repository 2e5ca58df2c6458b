"""Free time between appointments."""

from __future__ import annotations

from collections.abc import Iterable

from spans.sets import Span, SpanSet


def free_slots(
    day: Span, appointments: Iterable[Span], *, at_least: int = 1, pause: int = 0
) -> list[Span]:
    """Where an appointment can still be made.

    Args:
        day: When work starts and ends, in minutes.
        appointments: What is taken already.
        at_least: How long a slot has to be.
        pause: Minutes that are kept free before and after each appointment.
    """
    taken = SpanSet(appointments).widened(pause)
    free = SpanSet([day]).difference(taken)
    return [(start, end) for start, end in free if end - start >= at_least]


def busiest(appointments: Iterable[Span]) -> tuple[int, int]:
    """The first minute at which the most appointments overlap, and how many these are.

    An appointment that ends when another starts does not overlap with it. Without appointments
    that is (0, 0).
    """
    changes: list[tuple[int, int]] = []
    for start, end in appointments:
        if start < end:
            changes.append((start, 1))
            changes.append((end, -1))
    when = most = running = 0
    for minute, change in sorted(changes):
        running += change
        if running > most:
            when, most = minute, running
    return when, most
