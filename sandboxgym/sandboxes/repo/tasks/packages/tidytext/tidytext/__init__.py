"""Plain text for terminals and e-mails."""

from tidytext.cutting import cut, cut_middle
from tidytext.indenting import dedent, indent, margin
from tidytext.tables import align, table
from tidytext.wrapping import fill, justify, paragraphs, wrap

__all__ = [
    "align",
    "cut",
    "cut_middle",
    "dedent",
    "fill",
    "indent",
    "justify",
    "margin",
    "paragraphs",
    "table",
    "wrap",
]
