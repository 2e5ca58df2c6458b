"""Finding products by words: Lucene's BM25, with the same scores in the same order."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandboxgym.sandboxes.webshop.index import Index
from sandboxgym.sandboxes.webshop.tokens import Analyser

MOST = 50  # products that a search finds at most
LONG = 50_000  # products with a term, from where on it pays to look for a way around them
_LOOKING_UP = 10  # products are gone through while one is looked up
_SLACK = 1e-3  # more than what rounding may do to a score


class _Term(NamedTuple):
    """A term that is searched for.

    Attributes:
        products: The positions of the products that have it.
        divisors: What its weight is divided by in each.
        weight: How much it counts.
        bound: The highest score that it gives.
    """

    products: NDArray[np.int32]
    divisors: NDArray[np.float32]
    weight: np.float32
    bound: float

    def add_to_all(self, totals: NDArray[np.float64]) -> None:
        """Add its scores to those of all products."""
        totals[self.products] += self.weight - self.weight / self.divisors

    def add_to(self, found: NDArray[np.int32], scores: NDArray[np.float64]) -> None:
        """Add its scores to those of some products, which are looked up one by one."""
        places = np.searchsorted(self.products, found)
        places[places == len(self.products)] = 0
        have = self.products[places] == found
        scores[have] += self.weight - self.weight / self.divisors[places[have]]


class Search:
    """Searches one index."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._analyser = Analyser()

    def find(self, text: str, most: int = MOST) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The products that fit a text best, and their scores.

        Args:
            text: Any words. A word that is there twice counts twice.
            most: How many to give at most.

        Returns:
            Positions in the catalogue, best first; those with equal scores by asin.
        """
        found, totals = self._scored(self._wanted(text), most)
        scores = totals.astype(np.float32)
        if len(found) > most:
            among_best = scores >= _nth_best(scores, most)
            found, scores = found[among_best], scores[among_best]
        order = np.lexsort((self._index.ranks[found], -scores))[:most]
        return found[order], scores[order]

    def _wanted(self, text: str) -> list[_Term]:
        """The terms of a text that any product has, rare ones first."""
        wanted = []
        for term, times in Counter(self._analyser.terms(text)).items():
            postings = self._index.postings(term)
            if postings is not None:
                weight = np.float32(times) * self._index.idf(len(postings.products))
                bound = float(weight - weight / postings.largest)
                wanted.append(_Term(postings.products, postings.divisors, weight, bound))
        return sorted(wanted, key=lambda term: len(term.products))

    def _scored(
        self, wanted: list[_Term], most: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Products among which the best are, and their scores.

        When all terms that are left could not lift a product over those that are good already, they
        are looked up only for the products that may still be among the best. Scores are the same
        either way: the terms are added in the same order.
        """
        totals = np.zeros(len(self._index.ranks))
        short = [term for term in wanted if len(term.products) <= LONG]
        for number, term in enumerate(wanted):
            if len(term.products) > LONG:
                left = wanted[number:]
                # The best of those that have one rare term are no better than the best of all.
                good = max((_nth_best(totals[t.products], most) for t in short), default=0.0)
                spare = good - sum(t.bound for t in left) - _SLACK
                hopeful = totals > spare
                if spare > 0 and np.count_nonzero(hopeful) < len(term.products) / _LOOKING_UP:
                    found = np.flatnonzero(hopeful).astype(np.int32)
                    scores = totals[found]
                    for other in left:
                        other.add_to(found, scores)
                    return found, scores
            term.add_to_all(totals)
        found = np.flatnonzero(totals != 0).astype(np.int32)
        return found, totals[found]


def _nth_best(scores: NDArray[np.floating], n: int) -> float:
    """The n-th highest score, or 0 where fewer are above it."""
    scores = scores[scores > 0]
    return float(np.partition(scores, -n)[-n]) if len(scores) >= n else 0.0


def published(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scores as Anserini reports them: to four digits, with equal ones a little apart."""
    told = (np.floor(scores.astype(np.float64) * 1e4 + 0.5) / 1e4).astype(np.float32)
    ties = 0
    for i in range(1, len(told)):
        ties = 0 if told[i - 1] - told[i] > np.float32(1e-4) else ties + 1
        told[i] -= np.float32(1e-6) * np.float32(ties)
    return told
