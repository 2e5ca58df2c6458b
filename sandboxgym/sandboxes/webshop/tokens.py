"""From a text to the terms of the index, as Lucene's analyser for English does it.

Words are found by the rules of Unicode (UAX #29): letters, digits and what may stand inside a word
("don't", "3.5", "foo_bar"). Every ideograph, hiragana and emoji is a word of its own. Then the
possessive "'s" goes, stop words go, and the rest is stemmed.

Each character is first replaced by a letter for its class, so that the rules are one regular
expression over the classes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from sandboxgym.sandboxes.webshop.porter import stem

_STOP_WORDS = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there
    these they this to was will with
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
MAX_TOKEN = 255  # longer words are cut into pieces
MAX_REMEMBERED = 200_000

# Classes that a few characters have; all others follow from the categories of Unicode.
_OF_CHARACTERS = {
    **dict.fromkeys("_\u203f\u2040\u2054\ufe33\ufe34\ufe4d\ufe4e\ufe4f\uff3f", "E"),  # joins words
    **dict.fromkeys(":\u00b7\u0387\u055f\u05f4\u2027\ufe13\ufe55\uff1a", "L"),  # inside words
    **dict.fromkeys(
        ",;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b", "M"
    ),  # inside numbers
    **dict.fromkeys("'.\u2018\u2019\u2024\ufe52\uff07\uff0e", "B"),  # inside both
    '"': "Q",
    "#": "k",
    "*": "k",
    "\u20e3": "C",  # makes a key cap of what comes before
    "\ufe0e": "V",
    "\ufe0f": "V",
    "\u200d": "Z",
    "\u200b": " ",  # a space without width, though by its category it is a mark
    "\u200c": "X",
    "\uff9e": "X",
    "\uff9f": "X",
    "\u066b": "N",
    "\u05f3": "A",
    **dict.fromkeys("\u3005\u3007\u303b" + "".join(map(chr, range(0x3021, 0x302A))), "J"),
    **dict.fromkeys("\u3031\u3032\u3033\u3034\u3035\u309b\u309c\u30a0\u30fc\uff70", "K"),
}
_OF_RANGES = (
    (0x1F1E6, 0x1F1FF, "I"),  # pairs of these are flags
    (0x1F3FB, 0x1F3FF, "T"),  # colours of skin
    (0xE0020, 0xE007F, "X"),
    (0x24B6, 0x24E9, "A"), (0x1F130, 0x1F149, "A"), (0x1F150, 0x1F169, "A"),
    (0x1F172, 0x1F17D, "A"), (0x1F180, 0x1F189, "A"),
    (0x3300, 0x3357, "K"),  # katakana words in a square
)  # fmt: skip
# Scripts without spaces between words, of which a whole run is kept together.
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19DF), (0x1A20, 0x1AAF),
    (0xA9E0, 0xA9FF), (0xAA60, 0xAADF), (0x11700, 0x1173F),
)  # fmt: skip
# Pictographs of Unicode, without those that are letters as well.
_PICTOGRAPHS = (
    (0x00A9, 0x00A9), (0x00AE, 0x00AE), (0x2122, 0x2122), (0x3030, 0x3030), (0x303D, 0x303D),
    (0x203C, 0x203C), (0x2049, 0x2049), (0x2194, 0x2199), (0x21A9, 0x21AA), (0x231A, 0x231B),
    (0x2328, 0x2328), (0x2388, 0x2388), (0x23CF, 0x23CF), (0x23E9, 0x23F3), (0x23F8, 0x23FA),
    (0x25AA, 0x25AB), (0x25B6, 0x25B6), (0x25C0, 0x25C0), (0x25FB, 0x25FE), (0x2600, 0x2605),
    (0x2607, 0x2612), (0x2614, 0x2685), (0x2690, 0x2705), (0x2708, 0x2712), (0x2714, 0x2714),
    (0x2716, 0x2716), (0x271D, 0x271D), (0x2721, 0x2721), (0x2728, 0x2728), (0x2733, 0x2734),
    (0x2744, 0x2744), (0x2747, 0x2747), (0x274C, 0x274C), (0x274E, 0x274E), (0x2753, 0x2755),
    (0x2757, 0x2757), (0x2763, 0x2767), (0x2795, 0x2797), (0x27A1, 0x27A1), (0x27B0, 0x27B0),
    (0x27BF, 0x27BF), (0x2934, 0x2935), (0x2B05, 0x2B07), (0x2B1B, 0x2B1C), (0x2B50, 0x2B50),
    (0x2B55, 0x2B55), (0x3297, 0x3297), (0x3299, 0x3299), (0x1F000, 0x1F0FF), (0x1F10D, 0x1F10F),
    (0x1F12F, 0x1F12F), (0x1F16C, 0x1F171), (0x1F17E, 0x1F17F), (0x1F18E, 0x1F18E),
    (0x1F191, 0x1F19A), (0x1F201, 0x1F20F), (0x1F21A, 0x1F21A), (0x1F22F, 0x1F22F),
    (0x1F232, 0x1F23A), (0x1F23C, 0x1F23F), (0x1F249, 0x1F53D), (0x1F546, 0x1F64F),
    (0x1F680, 0x1F6FF), (0x1F774, 0x1F77F), (0x1F7D5, 0x1F7FF), (0x1F80C, 0x1F80F),
    (0x1F848, 0x1F84F), (0x1F85A, 0x1F85F), (0x1F888, 0x1F88F), (0x1F8AE, 0x1F8FF),
    (0x1F90C, 0x1F93A), (0x1F93C, 0x1F945), (0x1F947, 0x1FAFF), (0x1FC00, 0x1FFFD),
)  # fmt: skip
_OF_CATEGORIES = {"Nd": "N", "Nl": "A", "Mn": "X", "Mc": "X", "Me": "X", "Cf": "X"}


def class_of(character: str) -> str:
    """The class of a character, as one letter; a space for what is part of no word."""
    given = _OF_CHARACTERS.get(character)
    if given is not None:
        return given
    code = ord(character)
    for first, last, letter in _OF_RANGES:
        if first <= code <= last:
            return letter
    category = unicodedata.category(character)
    if category[0] in "LM" and _within(code, _UNSPACED):
        return "S"
    name = unicodedata.name(character, "")
    if name.startswith(("CJK UNIFIED", "CJK COMPATIBILITY I", "CJK RADICAL", "KANGXI RADICAL")):
        return "J"
    if category[0] != "M" and name.startswith("HIRAGANA"):
        return "J"
    if _is_katakana(name) and category[0] != "M":
        return "K"
    if category[0] == "L":
        return "H" if name.startswith("HEBREW LETTER") else "A"
    if _within(code, _PICTOGRAPHS):
        return "P"
    return _OF_CATEGORIES.get(category, " ")


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= code <= last for first, last in ranges)


def _is_katakana(name: str) -> bool:
    starts = ("KATAKANA LETTER", "KATAKANA ITER", "KATAKANA VOICED ITER", "KATAKANA DIGRAPH",
              "HALFWIDTH KATAKANA LETTER", "CIRCLED KATAKANA")  # fmt: skip
    return name.startswith(starts)


class _Classes(dict[int, str]):
    """The classes of characters for `str.translate`, each found out when it is first met."""

    def __missing__(self, code: int) -> str:
        self[code] = found = class_of(chr(code))
        return found


def _word_pattern() -> re.Pattern[str]:
    """The rules, over classes.

    What may fail after a run is bounded and not tried again within the run, so that time is linear.
    """
    marks = "XZVC"
    few = f"{{0,{MAX_TOKEN}}}"
    letters = f"[AH][AH{marks}]*"
    digits = f"N[N{marks}]*"
    joint = f"(?:E[{marks}]*)"
    mixed = (
        f"(?:{letters}(?:[LB][{marks}]*{letters}|(?<=H)Q{letters})*"
        f"|{digits}(?:[MB][{marks}]*{digits})*)+"
    )
    part = f"(?:{mixed}|K[K{marks}]*)"
    start = f"(?:(?<!E)(?<!E[{marks}]){joint}{{1,{MAX_TOKEN}}})?"
    word = f"{start}{part}(?:{joint}{{1,{MAX_TOKEN}}}{part})*{joint}*"
    after = f"(?:[XC]|Z(?!Z{few}[PT]))*"
    emoji = f"Z{few}(?:P{after}(?:V|T{after})?|T{after})"
    emojis = f"{emoji}(?:Z{emoji})*"
    rest = f"S[S{marks}]*|J[{marks}]*|{emojis}|I[{marks}]*I[{marks}]*|k[XZ]*V?C[XZC]*"
    return re.compile(f"{word}|{rest}")


_CLASSES = _Classes()
_WORD = _word_pattern()


def words(text: str) -> Iterator[str]:
    """The words of a text, as they stand there."""
    for match in _WORD.finditer(text.translate(_CLASSES)):
        start, end = match.span()
        while end - start > MAX_TOKEN:
            yield text[start : start + MAX_TOKEN]
            start += MAX_TOKEN
        yield text[start:end]


class Analyser:
    """Turns texts into terms, and remembers what became of each word."""

    def __init__(self) -> None:
        self._terms: dict[str, str] = {}

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order, with repetitions."""
        known = self._terms
        found = []
        for word in words(text):
            term = known.get(word)
            if term is None:
                if len(known) >= MAX_REMEMBERED:
                    known.clear()
                known[word] = term = term_of(word)
            if term:
                found.append(term)
        return found


def term_of(word: str) -> str:
    """What the index knows a word as; "" for a stop word."""
    if word[-2:-1] in ("'", "\u2019", "\uff07") and word[-1] in "sS":
        word = word[:-2]
    word = word.lower()
    return "" if word in STOP_WORDS else stem(word)
