"""From text to rows."""

from __future__ import annotations

from rowfile.dialect import Dialect


class RowError(ValueError):
    """A text is no table; `line` says where, and starts at 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


def parse(text: str, dialect: Dialect | None = None, *, strict: bool = False) -> list[list[str]]:
    """Read all rows of a text. Empty lines are no rows.

    Args:
        text: The table.
        dialect: How it is written down.
        strict: Whether all rows need to have as many fields as the first.

    Raises:
        RowError: A quote is not closed, something follows a closed one, or a row is of another
            length.
    """
    parser = _Parser(text, dialect or Dialect())
    rows = []
    while parser.at < len(text):
        line = parser.line
        row = parser.row()
        if row is None:
            continue
        if strict and rows and len(row) != len(rows[0]):
            raise RowError(f"{len(row)} fields and not {len(rows[0])}", line)
        rows.append(row)
    return rows


class _Parser:
    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.dialect = dialect
        self.at = 0
        self.line = 1

    def row(self) -> list[str] | None:
        """The fields of the next line; None where the line has no row."""
        comment = self.dialect.comment
        if comment and self.text.startswith(comment, self.at):
            self.skip_line()
            return None
        if self.ends_line():
            self.next_line()
            return None
        fields = [self.field()]
        while self.text.startswith(self.dialect.delimiter, self.at):
            self.at += len(self.dialect.delimiter)
            fields.append(self.field())
        self.next_line()
        return fields

    def field(self) -> str:
        if self.dialect.trim:
            self.skip_blanks()
        if self.text.startswith(self.dialect.quote, self.at):
            return self.quoted()
        start = self.at
        while not self.ends_field():
            self.at += 1
        field = self.text[start : self.at]
        return field.rstrip(" ") if self.dialect.trim else field

    def quoted(self) -> str:
        """A field in quotes. A quote in it is written twice, and a newline is as good as any."""
        quote = self.dialect.quote
        opened = self.line
        self.at += 1
        parts: list[str] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character != quote:
                self.line += character == "\n"
                parts.append(character)
                self.at += 1
            elif self.text.startswith(quote, self.at + 1):
                parts.append(quote)
                self.at += 2
            else:
                self.at += 1
                if self.dialect.trim:
                    self.skip_blanks()
                if not self.ends_field():
                    raise RowError("text after a closing quote", self.line)
                return "".join(parts)
        raise RowError("a quote is never closed", opened)

    def ends_line(self) -> bool:
        return self.at >= len(self.text) or self.text[self.at] in "\r\n"

    def ends_field(self) -> bool:
        return self.ends_line() or self.text.startswith(self.dialect.delimiter, self.at)

    def skip_blanks(self) -> None:
        while self.text.startswith(" ", self.at):
            self.at += 1

    def skip_line(self) -> None:
        while not self.ends_line():
            self.at += 1
        self.next_line()

    def next_line(self) -> None:
        """Go behind the end of the line, which is one or two characters."""
        self.at += 2 if self.text.startswith("\r\n", self.at) else 1
        self.line += 1
