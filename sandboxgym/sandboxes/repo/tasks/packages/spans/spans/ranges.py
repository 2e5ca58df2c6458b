"""Ranges as people write them, such as "1-3,7"."""

from __future__ import annotations

from spans.sets import SpanSet


def parse_ranges(text: str, *, last: int | None = None) -> SpanSet:
    """Read ranges as in a print dialog: "1-3,7" are the numbers 1, 2, 3 and 7.

    Args:
        text: The ranges, parted by commas. Blanks do not matter.
        last: Where "5-" ends; without it such a range is an error.

    Raises:
        ValueError: A part is no range, or ends before it starts.
    """
    spans = []
    for part in text.split(","):
        part = part.strip()
        if not part:
            continue
        low, dash, high = part.partition("-")
        try:
            start = int(low)
            if not dash:
                end = start
            elif high.strip():
                end = int(high)
            elif last is not None:
                end = last
            else:
                raise ValueError("an open range needs a last number")
        except ValueError as error:
            raise ValueError(f"{part!r} is no range: {error}") from None
        spans.append((start, end + 1))
    return SpanSet(spans)


def format_ranges(spans: SpanSet) -> str:
    """The opposite of `parse_ranges`. Two numbers in a row are no range: "1,2" and not "1-2"."""
    parts: list[str] = []
    for start, end in spans:
        last = end - 1
        if last == start:
            parts.append(str(start))
        elif last == start + 1:
            parts.extend((str(start), str(last)))
        else:
            parts.append(f"{start}-{last}")
    return ",".join(parts)
