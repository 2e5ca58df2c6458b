"""Sets of numbers as half-open spans."""

from spans.ranges import format_ranges, parse_ranges
from spans.sets import SpanSet
from spans.slots import busiest, free_slots

__all__ = ["SpanSet", "busiest", "format_ranges", "free_slots", "parse_ranges"]
