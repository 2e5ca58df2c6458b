"""Which words of a title are nouns: what a tagger is, and the memory of what it said.

The reward compares the nouns of two titles, so the tagger is a part of the task: with another one,
the same purchase may earn something else. Its id therefore belongs to the environment's spec.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

MAX_REMEMBERED = 20_000


@runtime_checkable
class NounTagger(Protocol):
    """Finds the nouns of a title. Its answer depends on the title alone."""

    @property
    def id(self) -> str:
        """Name and version, such as "spacy/en_core_web_sm-3.8.0"; other answers, another id."""

    def nouns(self, title: str) -> Sequence[str]:
        """The common and proper nouns in lower case, in order, each as often as it occurs."""


class GivenNouns:
    """Nouns that somebody found out before, by title."""

    def __init__(self, id: str, nouns: Mapping[str, Sequence[str]]) -> None:  # noqa: A002
        self.id = id
        self._nouns = nouns

    def nouns(self, title: str) -> Sequence[str]:
        """What was given for this title.

        Raises:
            KeyError: Nothing was.
        """
        return self._nouns[title]


class Nouns:
    """A tagger that remembers what it said; titles are few and are asked for again and again."""

    def __init__(self, tagger: NounTagger) -> None:
        self.tagger = tagger
        self._remembered: dict[str, tuple[str, ...]] = {}

    def of(self, title: str) -> tuple[str, ...]:
        """The nouns of a title, in lower case, in order, with repetitions."""
        found = self._remembered.get(title)
        if found is None:
            found = tuple(self.tagger.nouns(title))
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[title] = found
        return found
