"""A shop: its products, the search for them, and its pages. It never changes and can be shared."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sandboxgym.sandboxes.webshop import pages
from sandboxgym.sandboxes.webshop.catalogue import Catalogue, GoalKind
from sandboxgym.sandboxes.webshop.goals import Goals
from sandboxgym.sandboxes.webshop.index import Index, IndexBuilder
from sandboxgym.sandboxes.webshop.pages import Page, View
from sandboxgym.sandboxes.webshop.search import Search

MAX_REMEMBERED = 1_000
MAX_ORDERS = 8


class Shop:
    """What customers walk through.

    Args:
        catalogue: What is sold.
        index: The index of the catalogue; None makes one in memory.
        orders: The order of goals by kind and seed, where it is known.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        index: Index | None = None,
        orders: Mapping[tuple[GoalKind, int], NDArray[np.int32]] | None = None,
    ) -> None:
        self.catalogue = catalogue
        self._search = Search(index_of(catalogue) if index is None else index)
        self._orders = orders or {}
        self._found: dict[str, tuple[int, ...]] = {}
        self._goals: dict[tuple[GoalKind, int], Goals] = {}

    def found(self, keywords: str) -> tuple[int, ...]:
        """The positions of the products that a search finds, best first."""
        remembered = self._found.get(keywords)
        if remembered is None:
            positions, _ = self._search.find(keywords)
            remembered = tuple(positions.tolist())
            if len(self._found) >= MAX_REMEMBERED:
                self._found.clear()
            self._found[keywords] = remembered
        return remembered

    def goals(self, kind: GoalKind, seed: int) -> Goals:
        """The goals of that kind, in the order of the seed."""
        key = (kind, seed)
        if key not in self._goals:
            if len(self._goals) >= MAX_ORDERS:
                self._goals.clear()
            self._goals[key] = Goals(self.catalogue, kind, seed, self._orders.get(key))
        return self._goals[key]

    def page(self, view: View, instruction: str) -> Page:
        """What a customer sees at a view.

        Args:
            view: Any but that of a purchase.
            instruction: The customer's goal in words.

        Raises:
            KeyError: There is no such product.
        """
        if view.page == "index":
            return pages.index_page(instruction)
        if view.page == "results":
            found = self.found(view.keywords)
            last = view.number * pages.PER_PAGE
            shown = [self.catalogue[i] for i in found[last - pages.PER_PAGE : last]]
            return pages.results_page(view, instruction, shown, len(found))
        product = self.catalogue.product(view.asin)
        make = pages.item_page if view.page == "item" else pages.sub_page
        return make(view, instruction, product)


def index_of(catalogue: Catalogue) -> Index:
    """The index of a catalogue, made in memory."""
    builder = IndexBuilder()
    asins = []
    for product in catalogue:
        builder.add(product.indexed_text)
        asins.append(product.asin)
    return builder.finish(asins)
