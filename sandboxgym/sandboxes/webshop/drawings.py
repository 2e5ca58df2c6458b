"""Pictures of products: a simple drawing for each kind of thing, in colours of its own.

Catalogues bring no pictures that may be shown here. A drawing is chosen by the words of the
product's query and title, its colour by what is said about colours, or else by its asin.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from configparser import ConfigParser
from functools import lru_cache
from importlib import resources

_COLOURS = {
    "black": "#3a3a40", "white": "#d8d3c7", "grey": "#9098a0", "gray": "#9098a0",
    "silver": "#b4bcc4", "graphite": "#5b6168", "charcoal": "#4b5058", "red": "#c9413d",
    "burgundy": "#7f2a3c", "wine": "#7f2a3c", "plum": "#71406c", "purple": "#7a57a8",
    "lavender": "#a593cf", "pink": "#e0879f", "blush": "#e3a9a4", "rose": "#d98c94",
    "coral": "#ec7d68", "orange": "#e08a3c", "rust": "#b5562f", "terracotta": "#c66b4a",
    "copper": "#b8703f", "brass": "#c09a4b", "gold": "#cda643", "mustard": "#d0a02e",
    "yellow": "#e3bf3f", "ochre": "#c8933a", "honey": "#d9a441", "cream": "#e2d3ae",
    "ivory": "#dfd3b6", "sand": "#d6c19c", "tan": "#c7a57a", "beige": "#d8c6a6",
    "oak": "#c59a66", "walnut": "#7a553a", "brown": "#83593a", "espresso": "#55392b",
    "chestnut": "#8a4f32", "cognac": "#a9622f", "olive": "#7f8345", "sage": "#9caf88",
    "green": "#5a9367", "mint": "#8fcfb4", "teal": "#2f8587", "aqua": "#5fb9bd",
    "blue": "#4a7fb5", "navy": "#2f4470", "sky": "#7fb4dd",
}  # fmt: skip
_PALETTE = (
    "#c66b4a", "#5a9367", "#4a7fb5", "#d0a02e", "#7a57a8", "#2f8587", "#d98c94", "#83593a",
    "#9caf88", "#5b6168",
)  # fmt: skip
_UNKNOWN = "?"  # no word that is looked for
_LETTERS = re.compile(r"[a-z][a-z-]*")


def drawing(asin: str, query: str, title: str, options: Iterable[str] = ()) -> str:
    """An SVG image of a product.

    Args:
        asin: Its name, which decides the colour where nothing else does.
        query: What it is found by.
        title: What it is called.
        options: What was chosen of it; a colour among them is taken.
    """
    said, called = _words(" ".join(options)), _words(title)
    shapes = _shapes(_words(query)) or _shapes(called) or _shapes_by_word()[_UNKNOWN]
    return (
        f'<svg class="drawing" viewBox="0 0 100 100" aria-hidden="true" '
        f'style="--own:{_colour([*said, *called], asin)}">{shapes}</svg>'
    )


def _shapes(words: list[str]) -> str | None:
    """What is drawn for the last word that is known: in English, that is the thing itself."""
    known = _shapes_by_word()
    for word in reversed(words):
        shapes = known.get(word) or known.get(word.removesuffix("s"))
        if shapes:
            return shapes
    return None


@lru_cache(maxsize=1)
def _shapes_by_word() -> dict[str, str]:
    """Shapes by word, and those of what is not known."""
    file = ConfigParser(delimiters=("=",), interpolation=None)
    text = resources.files(__package__).joinpath("drawings.ini").read_text(encoding="utf-8")
    file.read_string(text)
    shapes = {}
    for name in file.sections():
        joined = "".join(file[name]["shapes"].split("\n"))
        for word in file[name]["words"].split():
            shapes[word] = joined
    return shapes


def _colour(words: Iterable[str], asin: str) -> str:
    named = next((_COLOURS[word] for word in words if word in _COLOURS), None)
    return named or _PALETTE[zlib.crc32(asin.encode()) % len(_PALETTE)]


def _words(text: str) -> list[str]:
    return _LETTERS.findall(text.lower())
