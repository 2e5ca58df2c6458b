"""Porter's stemmer as search engines use it, with the changes that its author made later.

A word is looked at through its pattern of vowels and consonants: "trouble" is "ccvvccv". Its
measure is how often a consonant follows a vowel, here 1. Words of up to two letters stay as they
are. Whatever is no vowel of English counts as a consonant, digits and letters of other scripts too.
"""

from __future__ import annotations

_VOWELS = frozenset("aeiou")

# Ending → what it becomes where the rest of the word has a measure of 1 or more. Of several that
# fit, the first is taken; "bli" and "logi" are the later changes.
_DOUBLE_SUFFIXES = (
    ("ational", "ate"), ("tional", "tion"),
    ("enci", "ence"), ("anci", "ance"), ("izer", "ize"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"),
    ("ization", "ize"), ("ation", "ate"), ("ator", "ate"),
    ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"),
    ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"), ("logi", "log"),
)  # fmt: skip
_ICATE_AND_NESS = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"),
    ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
# Dropped where the rest has a measure of 2 or more.
_ENDINGS = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
)  # fmt: skip


def stem(word: str) -> str:
    """The stem of a word in lower case."""
    if len(word) <= 2:
        return word
    word = _without_plural(word)
    word = _without_ed_and_ing(word)
    if word[-1] == "y" and "v" in _pattern(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _DOUBLE_SUFFIXES)
    word = _replaced(word, _ICATE_AND_NESS)
    word = _without_ending(word)
    return _without_final_e_and_l(word)


def _pattern(word: str) -> str:
    """Which letters are vowels ("v") and which consonants ("c"); y is one after a consonant."""
    letters = []
    last = "v"
    for letter in word:
        vowel = letter in _VOWELS or (letter == "y" and last == "c")
        last = "v" if vowel else "c"
        letters.append(last)
    return "".join(letters)


def _measure(word: str) -> int:
    return _pattern(word).count("vc")


def _ends_in_double_consonant(word: str) -> bool:
    return len(word) >= 2 and word[-1] == word[-2] and _pattern(word)[-1] == "c"


def _is_short(word: str) -> bool:
    """Whether it ends in consonant, vowel, consonant, as "hop" does, but for a last w, x or y."""
    return _pattern(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _without_ed_and_ing(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    rest = word[:-2] if word.endswith("ed") else word[:-3] if word.endswith("ing") else ""
    if "v" not in _pattern(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if _ends_in_double_consonant(rest):
        return rest if rest[-1] in "lsz" else rest[:-1]
    if _measure(rest) == 1 and _is_short(rest):
        return rest + "e"
    return rest


def _replaced(word: str, suffixes: tuple[tuple[str, str], ...]) -> str:
    for suffix, other in suffixes:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return rest + other if _measure(rest) > 0 else word
    return word


def _without_ending(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            if ending == "ion" and not rest.endswith(("s", "t")):
                continue
            return rest if _measure(rest) > 1 else word
    return word


def _without_final_e_and_l(word: str) -> str:
    measure = _measure(word)
    if word[-1] == "e" and (measure > 1 or (measure == 1 and not _is_short(word[:-1]))):
        word = word[:-1]
    if word.endswith("ll") and measure > 1:
        word = word[:-1]
    return word
