"""Finding products by words: Lucene's BM25, with the same scores in the same order."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from sandboxgym.sandboxes.webshop.index import Index
from sandboxgym.sandboxes.webshop.tokens import Analyser

MOST = 50  # products that a search finds at most


class Search:
    """Searches one index."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._analyser = Analyser()

    def find(self, text: str, most: int = MOST) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The products that fit a text best, and their scores.

        Args:
            text: Any words. A word that is there twice counts twice.
            most: How many to give at most.

        Returns:
            Positions in the catalogue, best first; those with equal scores by asin.
        """
        totals = np.zeros(len(self._index.ranks))
        for term, times in Counter(self._analyser.terms(text)).items():
            postings = self._index.postings(term)
            if postings is not None:
                products, divisors = postings
                weight = np.float32(times) * self._index.idf(len(products))
                totals[products] += weight - weight / divisors
        scores = totals.astype(np.float32)
        found = _best(scores, most)
        order = np.lexsort((self._index.ranks[found], -scores[found]))[:most]
        return found[order], scores[found[order]]


def _best(scores: NDArray[np.float32], most: int) -> NDArray[np.int64]:
    """The positions of the highest scores, with all that equal the last of them; in no order."""
    found = np.flatnonzero(scores)
    if len(found) > most:
        least = np.partition(scores[found], -most)[-most]
        found = found[scores[found] >= least]
    return found


def published(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scores as Anserini reports them: to four digits, with equal ones a little apart."""
    told = (np.floor(scores.astype(np.float64) * 1e4 + 0.5) / 1e4).astype(np.float32)
    ties = 0
    for i in range(1, len(told)):
        ties = 0 if told[i - 1] - told[i] > np.float32(1e-4) else ties + 1
        told[i] -= np.float32(1e-6) * np.float32(ties)
    return told
