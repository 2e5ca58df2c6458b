"""The pages of the shop as data. Text, HTML and the real site are made of the same elements.

A `View` says where a customer is, and is all that a page depends on, beside the goal: there is no
hidden state. Each element that can be clicked says to which view it leads. So the links are the
state machine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sandboxgym.sandboxes.webshop.catalogue import Product

PER_PAGE = 10

PageName = Literal["index", "results", "item", "description", "features", "reviews", "done"]
Kind = Literal[
    "brand",  # the name of the shop
    "label",  # "Instruction:"
    "instruction",  # what the customer is to buy
    "button",  # leads to another view; the one of the search box leads nowhere by itself
    "count",  # which page of how many results
    "asin",  # a product among the results: its name, which is a link
    "title",  # of a product
    "price",
    "rating",
    "option_name",  # begins an option, whose values follow
    "option",  # a value that can be chosen
    "description",
    "feature",
    "receipt",  # what is said after a purchase
]
SUB_PAGES: tuple[PageName, ...] = ("description", "features", "reviews")


@dataclass(frozen=True, slots=True)
class View:
    """Where a customer is.

    Attributes:
        page: Which kind of page.
        keywords: What was searched for.
        number: Which page of the results, from 1.
        asin: The product that is looked at.
        options: Name and value of each option chosen, in the order in which names came up.
    """

    page: PageName = "index"
    keywords: str = ""
    number: int = 1
    asin: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def results(self, number: int) -> View:
        """A page of the results, with no product chosen."""
        return View("results", self.keywords, number)

    def item(self, asin: str) -> View:
        """The page of a product, with nothing chosen."""
        return replace(self, page="item", asin=asin, options=())

    def choosing(self, name: str, value: str) -> View:
        """The same page after an option was chosen."""
        options = dict(self.options)
        options[name] = value
        return replace(self, page="item", options=tuple(options.items()))

    def at(self, page: PageName) -> View:
        """Another page of the same product."""
        return replace(self, page=page)


INDEX = View()


@dataclass(frozen=True, slots=True)
class Element:
    """A piece of text on a page, and where it leads if it is clicked."""

    kind: Kind
    text: str
    link: View | None = None

    @property
    def source(self) -> str:
        """The text as it stands between the tags of HTML, where some have a space before them."""
        return f" {self.text}" if self.kind == "feature" else self.text


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its elements from top to bottom."""

    view: View
    elements: tuple[Element, ...]

    @property
    def has_search_box(self) -> bool:
        """Whether there is a box to search with; `search[…]` works everywhere nevertheless."""
        return self.view.page == "index"

    def clickables(self) -> dict[str, Element]:
        """What can be clicked, by its text in lower case: buttons, products, then options.

        Of several with one text the last counts, at the place of the first.
        """
        buttons = [e for e in self.elements if e.kind == "button"]
        products = [e for e in self.elements if e.kind == "asin"]
        options = [e for e in self.elements if e.kind == "option"]
        found = {e.text.lower(): e for e in buttons + products}
        return found | {e.text: e for e in options}

    def link(self, text: str) -> View | None:
        """Where a click on a text leads, or None if it cannot be clicked.

        A button comes before an option that is called like it.
        """
        for element in self.elements:
            if element.kind == "button" and element.text.lower() == text:
                return element.link
        found = self.clickables().get(text)
        return found.link if found else None


def index_page(instruction: str) -> Page:
    """The first page, with the search box."""
    elements = (
        Element("brand", "WebShop"),
        Element("label", "Instruction: "),
        Element("instruction", instruction),
        Element("button", "Search"),
    )
    return Page(INDEX, elements)


def results_page(view: View, instruction: str, found: Sequence[Product], total: int) -> Page:
    """A page of results.

    Args:
        view: Where the customer is.
        instruction: The goal in words.
        found: The products to show; none past the end.
        total: How many were found in all.
    """
    elements = [
        *_head(instruction),
        Element("count", f"Page {view.number} (Total results: {total})"),
    ]
    if view.number > 1:
        elements.append(Element("button", "< Prev", view.results(view.number - 1)))
    elements.append(Element("button", "Next >", view.results(view.number + 1)))
    for product in found:
        elements += (
            Element("asin", product.asin, view.item(product.asin)),
            Element("title", product.title),
            Element("price", product.price_tag),
        )
    return Page(view, tuple(elements))


def item_page(view: View, instruction: str, product: Product) -> Page:
    """The page of a product, where options are chosen and it is bought."""
    elements = [*_head(instruction), Element("button", "< Prev", view.results(view.number))]
    for name, values in product.options.items():
        elements.append(Element("option_name", name))
        elements += (Element("option", value, view.choosing(name, value)) for value in values)
    elements += (
        Element("title", product.title),
        Element("price", f"Price: {product.price_tag}"),
        Element("rating", "Rating: N.A."),
        Element("button", "Description", view.at("description")),
        Element("button", "Features", view.at("features")),
        Element("button", "Reviews", view.at("reviews")),
        Element("button", "Buy Now", view.at("done")),
    )
    return Page(view, tuple(elements))


def sub_page(view: View, instruction: str, product: Product) -> Page:
    """More about a product. Nobody has reviewed any."""
    elements = [*_head(instruction), Element("button", "< Prev", view.at("item"))]
    if view.page == "description":
        elements.append(Element("description", product.description))
    elif view.page == "features":
        elements += (Element("feature", feature) for feature in product.features)
    return Page(view, tuple(elements))


def done_page(view: View, reward: float) -> Page:
    """What the original says after a purchase, with all that it leaves blank."""
    options = _for_scripts(json.dumps(dict(view.options), sort_keys=True))
    lines = (
        "Thank you for shopping with us!", "Your code: ", "None", " (Paste it in your MTurk "
        "interface.)", "Purchased", "asin", view.asin, "options", options, "attrs", "None",
        "category", "None", "query", "None", "product category", "None", "Target", "asin",
        "options", "attrs", "price upper", "instuction text", "category", "product category",
        "query", "Goal ", "None", "Reward", "Your score (min 0.0, max 1.0)", str(reward),
        "Reward Details ", "None",
    )  # fmt: skip
    return Page(view, tuple(Element("receipt", line) for line in lines))


def _head(instruction: str) -> tuple[Element, ...]:
    return (
        Element("label", "Instruction:"),
        Element("instruction", instruction),
        Element("button", "Back to Search", INDEX),
    )


def _for_scripts(text: str) -> str:
    """JSON as templates write it into a page, where these characters might end the script."""
    for character in "<>&'":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
