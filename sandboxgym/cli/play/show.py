"""Observations and pictures as text for a terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.style import Style
from rich.text import Text

LONGEST = 20_000
MOST_NUMBERS = 64


def observation(obs: Any, width: int, height: int = 50) -> Text:
    """Show an observation.

    Text as it is, a picture in half blocks, small arrays in full, large ones summed up, dicts and
    tuples part by part.

    Args:
        obs: The observation.
        width: How many columns there are.
        height: How many rows a picture may take.
    """
    if isinstance(obs, Text):
        return obs
    if isinstance(obs, str):
        return coloured(obs) if obs else Text("(empty)")
    if is_picture(obs):
        return picture(obs, width, height)
    if isinstance(obs, dict):
        return _parts([(str(key), value) for key, value in obs.items()], width, height)
    if isinstance(obs, tuple | list):
        return _parts([(str(index), value) for index, value in enumerate(obs)], width, height)
    return Text(printable(_value(obs)))


def is_picture(obs: Any) -> bool:
    """Whether an array is a picture: bytes of gray or of red, green and blue."""
    if not isinstance(obs, np.ndarray) or obs.dtype != np.uint8 or obs.ndim not in (2, 3):
        return False
    return min(obs.shape[:2]) >= 8 and (obs.ndim == 2 or obs.shape[2] in (1, 3))


def picture(pixels: np.ndarray[Any, Any], width: int, height: int) -> Text:
    """Draw a picture with two pixels in each character, scaled down to columns and rows."""
    colours = np.atleast_3d(pixels)
    if colours.shape[2] == 1:
        colours = colours.repeat(3, axis=2)
    small = _shrunk(colours, max(1, width), max(1, 2 * height))
    if len(small) % 2:
        small = np.vstack([small, np.zeros_like(small[:1])])
    drawn = Text(no_wrap=True)
    for upper, lower in zip(small[::2], small[1::2], strict=True):
        for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
            drawn.append("▀", Style(color=_hex(above), bgcolor=_hex(below)))
        drawn.append("\n")
    drawn.rstrip()
    return drawn


def coloured(text: str) -> Text:
    """Text with the colours that its escape sequences ask for, and nothing else that they do."""
    if "\x1b[" not in text:
        return Text(printable(text))
    shown = Text.from_ansi(_cut(text))
    shown.plain = _harmless(shown.plain)
    return shown


def printable(text: str) -> str:
    """Text without characters that would steer the terminal, cut where it is very long."""
    return _harmless(_cut(text))


def _cut(text: str) -> str:
    left_out = len(text) - LONGEST
    return text if left_out <= 0 else f"{text[:LONGEST]}\n... ({left_out} more characters)"


def _harmless(text: str) -> str:
    return "".join(
        character if character in "\n\t" or not _steers(character) else "\N{REPLACEMENT CHARACTER}"
        for character in text.replace("\r\n", "\n")
    )


def _steers(character: str) -> bool:
    """Whether it is a control character, half a character, or turns the direction of writing."""
    code = ord(character)
    return (
        code < 32
        or 127 <= code < 160
        or 0xD800 <= code < 0xE000
        or 0x202A <= code <= 0x202E
        or 0x2066 <= code <= 0x2069
    )


def _shrunk(colours: np.ndarray[Any, Any], width: int, height: int) -> np.ndarray[Any, Any]:
    """The mean colour of equal tiles, so that thin lines stay to be seen."""
    scale = max(1.0, colours.shape[1] / width, colours.shape[0] / height)
    rows = np.arange(0, max(1, int(colours.shape[0] / scale))) * scale
    columns = np.arange(0, max(1, int(colours.shape[1] / scale))) * scale
    summed = np.add.reduceat(colours.astype(np.uint32), rows.astype(int), axis=0)
    summed = np.add.reduceat(summed, columns.astype(int), axis=1)
    tall = np.diff(np.append(rows.astype(int), colours.shape[0]))
    wide = np.diff(np.append(columns.astype(int), colours.shape[1]))
    means: np.ndarray[Any, Any] = summed // (tall[:, None, None] * wide[None, :, None])
    return means.astype(np.uint8)


def _hex(colour: list[int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _parts(parts: list[tuple[str, Any]], width: int, height: int) -> Text:
    shown = Text()
    for name, value in parts:
        nested = is_picture(value) or isinstance(value, dict | tuple | list | str)
        shown.append(f"{printable(name)}:", "bold")
        shown.append("\n" if nested else " ")
        shown.append_text(observation(value, width, height))
        shown.append("\n")
    shown.rstrip()
    return shown if parts else Text("(empty)")


def _value(obs: Any) -> str:
    if not isinstance(obs, np.ndarray):
        text = repr(obs.item() if isinstance(obs, np.generic) else obs)
        return text if len(text) <= LONGEST else f"a {type(obs).__name__} too long to show"
    if obs.size <= MOST_NUMBERS:
        return np.array2string(obs, precision=4, suppress_small=True, separator="  ")
    what = f"{obs.dtype} array of shape {obs.shape}"
    if not np.issubdtype(obs.dtype, np.number):
        return what
    numbers = obs.astype(np.float64)
    start = " ".join(f"{value:.4g}" for value in numbers.ravel()[:8])
    return (
        f"{what}\nfrom {numbers.min():.4g} to {numbers.max():.4g}, mean {numbers.mean():.4g}\n"
        f"{start} ..."
    )
