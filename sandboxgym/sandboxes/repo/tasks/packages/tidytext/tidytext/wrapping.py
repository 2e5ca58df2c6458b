"""Breaking text into lines."""

from __future__ import annotations


def paragraphs(text: str) -> list[str]:
    """Split a text at its blank lines; each paragraph becomes a single line."""
    found: list[str] = []
    current: list[str] = []
    for line in text.splitlines():
        if line.strip():
            current.append(line.strip())
        elif current:
            found.append(" ".join(current))
            current = []
    if current:
        found.append(" ".join(current))
    return found


def wrap(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Break a paragraph into lines of at most `width` characters.

    Args:
        text: The paragraph. Any run of white space is a single blank.
        width: Characters in a line, the prefix included. A word that is longer is broken.
        first: Prefix of the first line.
        rest: Prefix of all other lines.

    Raises:
        ValueError: The width leaves no room beside a prefix.
    """
    if width <= max(len(first), len(rest)):
        raise ValueError(f"no room for text in {width} columns")
    lines: list[str] = []
    line = first
    is_empty = True
    for word in text.split():
        needed = len(word) if is_empty else len(word) + 1
        if not is_empty and len(line) + needed > width:
            lines.append(line)
            line = rest
            is_empty = True
        while is_empty and len(line) + len(word) > width:
            room = width - len(line)
            lines.append(line + word[:room])
            word = word[room:]
            line = rest
        if word:
            line += word if is_empty else " " + word
            is_empty = False
    if not is_empty:
        lines.append(line)
    return lines


def fill(text: str, width: int) -> str:
    """Wrap all paragraphs of a text, with a blank line between them."""
    return "\n\n".join("\n".join(wrap(part, width)) for part in paragraphs(text))


def justify(line: str, width: int) -> str:
    """Spread the words of a line over the whole width.

    What cannot be spread evenly goes to the gaps on the left. A single word stays where it is.
    """
    words = line.split()
    gaps = len(words) - 1
    if gaps < 1:
        return line.strip()
    blanks = width - sum(len(word) for word in words)
    if blanks < gaps:
        return " ".join(words)
    each, more = divmod(blanks, gaps)
    spread = words[0]
    for number, word in enumerate(words[1:]):
        spread += " " * (each + (1 if number < more else 0)) + word
    return spread
