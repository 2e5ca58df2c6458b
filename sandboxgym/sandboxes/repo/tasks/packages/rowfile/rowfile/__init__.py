"""Tables in text files."""

from rowfile.columns import guess_type, sort_rows, to_records, totals
from rowfile.dialect import Dialect, guess_delimiter
from rowfile.reading import RowError, parse
from rowfile.writing import dump, quote

__all__ = [
    "Dialect",
    "RowError",
    "dump",
    "guess_delimiter",
    "guess_type",
    "parse",
    "quote",
    "sort_rows",
    "to_records",
    "totals",
]
