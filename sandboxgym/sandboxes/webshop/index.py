"""The index of a catalogue: for each term, in which products it occurs and how much it weighs.

It is made once. A large one lies in files that are mapped into memory, so that opening it costs
next to nothing and processes share it.

Lucene's BM25 gives a product, for a term that occurs f times in a text of length n, the score
    w - w / (1 + f / (k1 · (1 - b + b · n / average)))
with w = idf · (times the term was asked for). The divisor does not depend on what is searched for,
so that it is what the index keeps. All of it is arithmetic in 32 bits, in this order.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandboxgym.sandboxes.webshop.tokens import Analyser

K1 = np.float32(0.9)
B = np.float32(0.4)
_BLOCK = 50_000  # products whose postings are sorted in one go
_TERMS = "terms.txt"


class Postings(NamedTuple):
    """Products that have a term, in order; what its weight is divided by, in each and at most."""

    products: NDArray[np.int32]
    divisors: NDArray[np.float32]
    largest: np.float32


@dataclass(frozen=True)
class Index:
    """An inverted index.

    Attributes:
        terms: The number of each term.
        starts: Where the postings of each term begin; one more than there are terms.
        products: For each posting, the position of the product.
        divisors: And what the weight is divided by.
        largest: The largest divisor of each term.
        ranks: For each product, its place among all when they are sorted by asin.
        texts: How many products have any term.
    """

    terms: dict[str, int]
    starts: NDArray[np.int64]
    products: NDArray[np.int32]
    divisors: NDArray[np.float32]
    largest: NDArray[np.float32]
    ranks: NDArray[np.int32]
    texts: int

    def postings(self, term: str) -> Postings | None:
        """Where a term is, or None if it is nowhere."""
        number = self.terms.get(term)
        if number is None:
            return None
        here = slice(int(self.starts[number]), int(self.starts[number + 1]))
        return Postings(self.products[here], self.divisors[here], self.largest[number])

    def idf(self, having: int) -> np.float32:
        """How much a term weighs that so many products have."""
        rarity: np.float32 = np.float32(math.log(1 + (self.texts - having + 0.5) / (having + 0.5)))
        return rarity


class IndexBuilder:
    """Reads texts one after another and makes an index of them."""

    def __init__(self) -> None:
        self._analyser = Analyser()
        self._terms: dict[str, int] = {}
        self._lengths = array("i")
        self._blocks: list[_Block] = []
        self._block = _Block(0)

    def add(self, text: str) -> None:
        """Read the text of the next product."""
        if len(self._block.distinct) == _BLOCK:
            self._close_block()
        terms = self._analyser.terms(text)
        counts = Counter(terms)
        numbers = self._terms
        self._block.terms.extend(numbers.setdefault(term, len(numbers)) for term in counts)
        self._block.counts.extend(counts.values())
        self._block.distinct.append(len(counts))
        self._lengths.append(len(terms))

    def finish(self, asins: Sequence[str], folder: Path | None = None) -> Index:
        """Make the index.

        Args:
            asins: Of the products whose texts were read, in that order.
            folder: Where to write it; None keeps it in memory.
        """
        self._close_block()
        lengths = np.array(self._lengths, np.int64)
        texts = int(np.count_nonzero(lengths))
        per_occurrence = _per_occurrence(lengths, texts)
        frequencies = np.zeros(len(self._terms), np.int64)
        for block in self._blocks:
            np.add.at(frequencies, np.frombuffer(block.terms, np.int32), 1)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(frequencies)])
        products = _new(folder, "products", np.int32, int(starts[-1]))
        divisors = _new(folder, "divisors", np.float32, int(starts[-1]))
        free = starts[:-1].copy()
        for block in self._blocks:
            block.write(free, products, divisors, per_occurrence)
        ranks = np.empty(len(asins), np.int32)
        ranks[np.argsort(np.array([asin.encode() for asin in asins], "S"))] = range(len(asins))
        largest = np.maximum.reduceat(divisors, starts[:-1]) if self._terms else divisors
        index = Index(self._terms, starts, products, divisors, largest, ranks, texts)
        if folder is not None:
            _save(index, folder)
        return index

    def _close_block(self) -> None:
        self._blocks.append(self._block)
        self._block = _Block(self._block.first + len(self._block.distinct))


class _Block:
    """The terms of some products, one product after another."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.distinct = array("i")  # of each product, how many terms
        self.terms = array("i")
        self.counts = array("i")

    def write(
        self,
        free: NDArray[np.int64],
        products: NDArray[np.int32],
        divisors: NDArray[np.float32],
        per_occurrence: NDArray[np.float32],
    ) -> None:
        """Append these postings to those of their terms.

        Args:
            free: For each term, where its next posting goes; moved on.
            products: All postings.
            divisors: The same.
            per_occurrence: For each product, what one occurrence of a term counts.
        """
        terms = np.frombuffer(self.terms, np.int32)
        counts = np.frombuffer(self.counts, np.int32).astype(np.float32)
        last = self.first + len(self.distinct)
        owners = np.repeat(np.arange(self.first, last, dtype=np.int32), self.distinct)
        order = np.argsort(terms, kind="stable")
        present, begins, sizes = np.unique(terms[order], return_index=True, return_counts=True)
        targets = np.repeat(free[present] - begins, sizes) + np.arange(len(order))
        products[targets] = owners[order]
        divisors[targets] = np.float32(1) + (counts * per_occurrence[owners])[order]
        free[present] += sizes


def open_index(folder: Path) -> Index:
    """Map an index that was written to a folder."""
    names = (folder / _TERMS).read_text("utf-8").split("\n")
    arrays = {name: mapped(folder / f"{name}.npy") for name in _arrays()}
    texts = int(np.load(folder / "texts.npy"))
    return Index({name: i for i, name in enumerate(names)}, texts=texts, **arrays)


def _save(index: Index, folder: Path) -> None:
    # No term has a line break: what ends a line is part of no word.
    (folder / _TERMS).write_text("\n".join(index.terms), "utf-8")
    np.save(folder / "texts.npy", np.int64(index.texts))
    for name in _arrays():
        array_of = getattr(index, name)
        if isinstance(array_of, np.memmap):
            array_of.flush()
        else:
            np.save(folder / f"{name}.npy", array_of)


def _arrays() -> list[str]:
    return [field.name for field in fields(Index) if field.name not in ("terms", "texts")]


def mapped(path: Path) -> NDArray[Any]:
    """An array in a file, without what `numpy.memmap` adds to every slice."""
    return np.load(path, mmap_mode="r").view(np.ndarray)  # type: ignore[no-any-return]


def _new(folder: Path | None, name: str, kind: Any, size: int) -> NDArray[Any]:
    if folder is None or not size:
        return np.empty(size, kind)
    return np.lib.format.open_memmap(folder / f"{name}.npy", "w+", kind, (size,))


def _per_occurrence(lengths: NDArray[np.int64], texts: int) -> NDArray[np.float32]:
    """For each text, what a term in it gains by occurring once more."""
    average = np.float32(int(lengths.sum()) / max(texts, 1))
    known, where = np.unique(lengths, return_inverse=True)
    coarse = np.array([coarse_length(int(length)) for length in known], np.float32)
    if not texts:
        return np.zeros(len(lengths), np.float32)
    norms = K1 * ((np.float32(1) - B) + B * coarse / average)
    inverse: NDArray[np.float32] = (np.float32(1) / norms).astype(np.float32)
    return inverse[where]


def coarse_length(length: int) -> int:
    """The length of a text as Lucene remembers it, in one byte.

    Up to 40 it is exact; above, it has 4 significant bits after 24 is taken off.
    """
    over = length - 24
    shift = over.bit_length() - 4
    if over < 16:
        return length
    return 24 + (over >> shift << shift)
