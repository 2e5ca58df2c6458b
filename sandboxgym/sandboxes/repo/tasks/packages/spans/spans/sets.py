"""`SpanSet`: a set of numbers, kept as spans that do not touch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

Span = tuple[int, int]


class SpanSet:
    """A set of numbers. A span (a, b) has all numbers from a to b, without b.

    Args:
        spans: In any order; they may overlap, and empty ones are left out.

    Raises:
        ValueError: A span ends before it starts.
    """

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._spans: list[Span] = _merged(spans)

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpanSet) and self._spans == other._spans

    def __repr__(self) -> str:
        return f"SpanSet({self._spans})"

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._spans, number, key=lambda span: span[0])
        return at > 0 and number < self._spans[at - 1][1]

    def size(self) -> int:
        """How many numbers are in the set."""
        return sum(end - start for start, end in self._spans)

    def union(self, other: SpanSet) -> SpanSet:
        """What is in one of two sets, or in both."""
        return SpanSet([*self, *other])

    def intersection(self, other: SpanSet) -> SpanSet:
        """What is in both of two sets."""
        common: list[Span] = []
        mine, theirs = list(self), list(other)
        i = j = 0
        while i < len(mine) and j < len(theirs):
            start = max(mine[i][0], theirs[j][0])
            end = min(mine[i][1], theirs[j][1])
            if start < end:
                common.append((start, end))
            if mine[i][1] < theirs[j][1]:
                i += 1
            else:
                j += 1
        return SpanSet(common)

    def difference(self, other: SpanSet) -> SpanSet:
        """What is in this set and not in the other."""
        left: list[Span] = []
        for start, end in self:
            at = start
            for first, last in other:
                if last <= at or first >= end:
                    continue
                if first > at:
                    left.append((at, first))
                at = last
            if at < end:
                left.append((at, end))
        return SpanSet(left)

    def gaps(self) -> SpanSet:
        """What lies between the spans."""
        between = zip(self._spans, self._spans[1:], strict=False)
        return SpanSet((before[1], after[0]) for before, after in between)

    def shifted(self, by: int) -> SpanSet:
        """The same set elsewhere."""
        return SpanSet((start + by, end + by) for start, end in self)

    def widened(self, by: int) -> SpanSet:
        """Every span longer by so much at both ends. What would start below 0 starts at 0."""
        return SpanSet((max(0, start - by), end + by) for start, end in self)


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if end < start:
            raise ValueError(f"span ({start}, {end}) ends before it starts")
        if start == end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
