"""Making text fit by leaving something out."""

from __future__ import annotations


def cut(text: str, width: int, mark: str = "...") -> str:
    """Cut the end of a text that is too long, at a blank where there is one.

    Args:
        text: What may be too long.
        width: How long it may be, the mark included.
        mark: Stands for what was left out.
    """
    if len(text) <= width:
        return text
    room = width - len(mark)
    if room <= 0:
        return mark[:width]
    head = text[:room]
    blank = head.rfind(" ")
    if blank > 0 and text[room] != " ":
        head = head[:blank]
    return head.rstrip() + mark


def cut_middle(text: str, width: int, mark: str = "...") -> str:
    """Cut the middle out of a text that is too long, such as a path.

    Where both ends cannot be of the same length, the end gets one character more.
    """
    if len(text) <= width:
        return text
    room = width - len(mark)
    if room <= 1:
        return mark[:width]
    head = room // 2
    tail = room - head
    return text[:head] + mark + text[len(text) - tail :]
