"""How alike two texts are, as the original's reward asks `thefuzz.fuzz.token_set_ratio`."""

from __future__ import annotations

import re

_LATIN_1_ABOVE_ASCII = dict.fromkeys(range(128, 256))
_NO_WORD = re.compile(r"\W")


def token_set_ratio(left: object, right: object) -> int:
    """Compare the sets of words of two texts.

    The words that both have are put first, in order; then come those that only one has. The result
    is the best likeness among the common words alone and with each of the two rests.

    Args:
        left: A text, or anything that has a text, such as a tuple of name and value.
        right: The same.

    Returns:
        0 where nothing is alike, up to 100 where one set holds the other.
    """
    ours, theirs = set(_cleaned(left).split()), set(_cleaned(right).split())
    if not ours or not theirs:
        return 0
    common = ours & theirs
    if common and (ours == common or theirs == common):
        return 100
    our_rest, their_rest = " ".join(sorted(ours - common)), " ".join(sorted(theirs - common))
    shared = len(" ".join(common))
    gap = 1 if shared else 0
    our_length = shared + gap + len(our_rest)
    their_length = shared + gap + len(their_rest)
    scores = [_score(_distance(our_rest, their_rest), our_length + their_length)]
    if shared:
        scores.append(_score(gap + len(our_rest), shared + our_length))
        scores.append(_score(gap + len(their_rest), shared + their_length))
    return round(max(scores))


def _cleaned(value: object) -> str:
    text = str(value).translate(_LATIN_1_ABOVE_ASCII)
    return _NO_WORD.sub(" ", text).lower()


def _score(distance: int, length: int) -> float:
    return 100 - 100 * distance / length


def _distance(left: str, right: str) -> int:
    """How many characters have to be put in or taken out to make one text of the other."""
    return len(left) + len(right) - 2 * _longest_common_subsequence(left, right)


def _longest_common_subsequence(left: str, right: str) -> int:
    """Its length, found for all positions of `left` at once in the bits of one integer."""
    places: dict[str, int] = {}
    for position, character in enumerate(left):
        places[character] = places.get(character, 0) | 1 << position
    everything = (1 << len(left)) - 1
    unmatched = everything
    for character in right:
        matches = unmatched & places.get(character, 0)
        unmatched = ((unmatched + matches) | (unmatched - matches)) & everything
    return len(left) - unmatched.bit_count()
