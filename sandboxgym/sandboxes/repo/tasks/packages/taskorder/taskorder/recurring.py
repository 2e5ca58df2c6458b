"""Things that are done again and again."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
SATURDAY = 5


def parse_interval(text: str) -> int:
    """Seconds of an interval such as "1h30m" or "90". A number without a unit is seconds.

    Raises:
        ValueError: It is no interval.
    """
    seconds = 0
    digits = ""
    for character in text.strip().lower():
        if character.isdigit():
            digits += character
        elif character in UNITS and digits:
            seconds += int(digits) * UNITS[character]
            digits = ""
        elif character != " " or digits:
            raise ValueError(f"no interval: {text!r}")
    if digits:
        seconds += int(digits)
    elif seconds == 0 and "0" not in text:
        raise ValueError(f"no interval: {text!r}")
    return seconds


def next_run(now: int, interval: int, *, offset: int = 0, last: int | None = None) -> int:
    """When something that is done every `interval` seconds is due.

    Args:
        now: The time.
        interval: Seconds between two runs. They are at the multiples of it.
        offset: How much after these.
        last: When it was done last. A run that was missed since then is due now, but only once.
    """
    passed = (now - offset) // interval * interval + offset
    if last is not None and last < passed:
        return now
    return passed + interval


def business_day(day: date, number: int, holidays: Collection[date] = ()) -> date:
    """The day that is a number of working days later, or earlier where it is below 0.

    With 0 it is the day itself or, if that is no working day, the next one.
    """

    def is_free(some_day: date) -> bool:
        return some_day.weekday() >= SATURDAY or some_day in holidays

    step = timedelta(days=1 if number >= 0 else -1)
    left = abs(number)
    while left > 0:
        day += step
        if not is_free(day):
            left -= 1
    while is_free(day):
        day += step
    return day
