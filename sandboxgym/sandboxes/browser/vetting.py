"""What a moment that came as bytes may say. It may come from anywhere, and is told to a browser."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from sandboxgym.sandboxes.browser.actions import MAX_ACTION

if TYPE_CHECKING:
    from sandboxgym.sandboxes.browser.recorder import Story

MAX_ENTRIES = 60  # of a history; Chromium keeps 50
MAX_DEEDS = 100_000
MAX_SPAN_MS = 3_600_000.0  # from one deed to the next
MAX_TIME_MS = 1e11


def typed(data: Any, kind: Any) -> Any:
    """Plain data as what it is to be, with every field of its type.

    Raises:
        ValueError: It is something else.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def vet(story: Story, end: float) -> None:
    """Check that a story can be told in a time that goes forward, within what is possible.

    Args:
        story: The story.
        end: When it ends, in milliseconds of virtual time.

    Raises:
        ValueError: It is not so; the text says where.
    """
    start, times = story.start, [story.start.time, *(deed.time for deed in story.deeds), end]
    if len(story.deeds) > MAX_DEEDS:
        raise ValueError(f"it has {len(story.deeds)} deeds, over {MAX_DEEDS}")
    if not all(0 <= time < MAX_TIME_MS for time in times):  # nor is it no number
        raise ValueError(f"it goes from {times[0]} to {times[-1]} ms")
    for earlier, later in pairwise(times):
        if not -1.0 <= later - earlier <= MAX_SPAN_MS:
            raise ValueError(f"{later} ms come after {earlier} ms")
    if len(start.history) > MAX_ENTRIES:
        raise ValueError(f"its history has {len(start.history)} entries")
    for place in (start.mouse, start.pointer or [0.0, 0.0]):
        if len(place) != 2 or not all(abs(number) < 1e6 for number in place):
            raise ValueError(f"the mouse cannot be at {place}")
    if any(len(deed.text) > MAX_ACTION for deed in story.deeds):
        raise ValueError(f"an action has more than {MAX_ACTION} characters")
    for exchange in story.exchanges:
        if not 100 <= exchange.response.status <= 999:
            raise ValueError(f"{exchange.request.url} was answered {exchange.response.status}")


def foreign(urls: Iterable[str], origin: str) -> str | None:
    """The first URL that is not of an origin, nor an empty page; None where all are."""
    own = urlsplit(origin)[:2]
    return next((url for url in urls if url != "about:blank" and urlsplit(url)[:2] != own), None)
