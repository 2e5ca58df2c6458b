"""A shop: its products, the search for them, and its pages. It never changes and can be shared."""

from __future__ import annotations

from sandboxgym.sandboxes.webshop import pages
from sandboxgym.sandboxes.webshop.catalogue import Catalogue
from sandboxgym.sandboxes.webshop.index import Index, IndexBuilder
from sandboxgym.sandboxes.webshop.pages import Page, View
from sandboxgym.sandboxes.webshop.search import Search

MAX_REMEMBERED = 1_000


class Shop:
    """What customers walk through.

    Args:
        catalogue: What is sold.
        index: The index of the catalogue; None makes one in memory.
    """

    def __init__(self, catalogue: Catalogue, index: Index | None = None) -> None:
        self.catalogue = catalogue
        self._search = Search(index_of(catalogue) if index is None else index)
        self._found: dict[str, tuple[int, ...]] = {}

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
