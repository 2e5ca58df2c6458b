"""From rows to text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rowfile.dialect import Dialect


def quote(field: str, dialect: Dialect, *, first: bool = False) -> str:
    """A field as it has to be written, with quotes only where it needs them.

    Args:
        field: The field.
        dialect: How the table is written down.
        first: Whether it starts its line, where it may not look like a comment.
    """
    needs_quotes = (
        dialect.delimiter in field
        or dialect.quote in field
        or "\n" in field
        or "\r" in field
        or (dialect.trim and field != field.strip(" "))
        or (first and dialect.comment != "" and field.startswith(dialect.comment))
    )
    if not needs_quotes:
        return field
    doubled = field.replace(dialect.quote, dialect.quote * 2)
    return dialect.quote + doubled + dialect.quote


def dump(
    rows: Iterable[Sequence[object]], dialect: Dialect | None = None, *, newline: str = "\n"
) -> str:
    """Write rows as `parse` reads them.

    Args:
        rows: The fields; None becomes an empty one, everything else its `str`.
        dialect: How the table is written down.
        newline: The end of every line, the last one too.
    """
    dialect = dialect or Dialect()
    lines = []
    for row in rows:
        texts = ["" if field is None else str(field) for field in row]
        if texts == [""]:
            # Without quotes the line would be empty, and an empty line is no row.
            lines.append(dialect.quote * 2)
            continue
        fields = [quote(text, dialect, first=at == 0) for at, text in enumerate(texts)]
        lines.append(dialect.delimiter.join(fields))
    return "".join(line + newline for line in lines)
