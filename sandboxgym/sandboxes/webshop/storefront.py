"""The shop's pages as people would see them: HTML with a style, made of the elements of pages.

Between the tags stands the very text of text mode, in the same order, and nothing else. What the
style adds, such as drawings and the search box in the head, has names for screen readers only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from importlib import resources

from sandboxgym.sandboxes.webshop.addresses import address_of
from sandboxgym.sandboxes.webshop.catalogue import Catalogue
from sandboxgym.sandboxes.webshop.drawings import drawing
from sandboxgym.sandboxes.webshop.pages import SUB_PAGES, Element, Page, View
from sandboxgym.sandboxes.webshop.session import MAX_SEARCH

SEARCH_ID = "search"
_SHOWN_AT_FIRST = ("lamp", "shoes", "camera", "candle", "dress", "cookie", "bottle")
_LENS = (
    '<svg viewBox="0 0 20 20" aria-hidden="true"><circle cx="8" cy="8" r="5.5" fill="none" '
    'stroke="currentColor" stroke-width="2.4"/><path d="M12 12l6 6" stroke="currentColor" '
    'stroke-width="2.8" stroke-linecap="round"/></svg>'
)
_SIGN = '<div class="sign" role="img" aria-label="WebShop"></div>'


def document(page: Page, catalogue: Catalogue) -> str:
    """A page of the shop as a document.

    Args:
        page: What is on it.
        catalogue: Where products are looked up for their pictures.
    """
    view = page.view
    if view.page == "index":
        body = _first_page(page)
    elif view.page == "results":
        body = _results(page, catalogue)
    elif view.page == "item":
        body = _product(page, catalogue)
    elif view.page in SUB_PAGES:
        body = _more(page)
    else:
        body = _receipt(page)
    head = (
        ""
        if page.has_search_box
        else f"<header><div>{_SIGN}{_search_box('', view.keywords)}</div></header>"
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(_title(view, catalogue))}</title><style>{_style()}</style></head>"
        f"<body>{head}<main>{body}</main></body></html>"
    )


def _title(view: View, catalogue: Catalogue) -> str:
    if view.page == "results":
        return f"{view.keywords} - WebShop"
    if view.asin and view.page != "done":
        return f"{catalogue.product(view.asin).title} - WebShop"
    return "WebShop"


def _first_page(page: Page) -> str:
    brand, label, instruction, search = page.elements
    shelf = "".join(drawing(word, word, "") for word in _SHOWN_AT_FIRST)
    return (
        f'<div class="welcome">{_tag("h2", brand)}{_wish(label, instruction)}'
        f'{_search_box(search.text)}<div class="shelf">{shelf}</div></div>'
    )


def _results(page: Page, catalogue: Catalogue) -> str:
    head, rest = _head(page)
    count, *buttons = [e for e in rest if e.kind in ("count", "button")]
    shown = [e for e in rest if e.kind not in ("count", "button")]
    cards = "".join(
        _card(*shown[at : at + 3], catalogue=catalogue) for at in range(0, len(shown), 3)
    )
    wish, back = head
    bar = f'<nav class="bar">{back}{_tag("h3", count)}{"".join(map(_button, buttons))}</nav>'
    return f'{wish}{bar}<ul class="results">{cards}</ul>'


def _card(asin: Element, title: Element, price: Element, *, catalogue: Catalogue) -> str:
    product = catalogue.product(asin.text)
    picture = drawing(product.asin, product.query, product.title)
    link = (
        f'<a class="asin" {_id(asin)} href="{_address(asin)}" aria-label="{_text(asin)}">'
        f"{_text(asin)}</a>"
    )
    return f"<li>{picture}{link}{_tag('h4', title)}{_tag('h5', price)}</li>"


def _product(page: Page, catalogue: Catalogue) -> str:
    (wish, back), rest = _head(page)
    previous = rest[0]
    options = "".join(_options(page.view, rest))
    title, price, rating = (e for e in rest if e.kind in ("title", "price", "rating"))
    *more, buy = [e for e in rest[1:] if e.kind == "button"]
    product = catalogue.product(page.view.asin)
    chosen = [value for _, value in page.view.options]
    return (
        f'{wish}<nav class="bar">{back}{_button(previous)}</nav><div class="product">'
        f"{drawing(product.asin, product.query, product.title, chosen)}"
        f'<div class="options">{options}</div>{_tag("h1", title)}{_tag("h5", price)}'
        f'{_tag("h5", rating)}<nav class="more">{"".join(map(_button, more))}</nav>'
        f'<form class="buy" method="post" action="{_address(buy)}">'
        f"<button {_id(buy)}>{_text(buy)}</button></form></div>"
    )


def _options(view: View, elements: list[Element]) -> Iterator[str]:
    name = ""
    for element in elements:
        if element.kind == "option_name":
            yield f"{'</div>' if name else ''}{_tag('h4', element)}"
            yield f'<div role="radiogroup" aria-label="{_text(element)}">'
            name = element.text
        elif element.kind == "option":
            checked = "true" if (name, element.text) in view.options else "false"
            yield (
                f'<a class="option" role="radio" aria-checked="{checked}" {_id(element)} '
                f'href="{_address(element)}">{_text(element)}</a>'
            )
    if name:
        yield "</div>"


def _more(page: Page) -> str:
    (wish, back), (previous, *texts) = _head(page)
    if page.view.page == "features":
        content = "<ul>" + "".join(_tag("li", element) for element in texts) + "</ul>"
    else:
        content = "".join(_tag("p", element) for element in texts)
    bar = f'<nav class="bar">{back}{_button(previous)}</nav>'
    return f'{wish}{bar}<div class="text">{content}</div>'


def _receipt(page: Page) -> str:
    thanks, *lines = page.elements
    texts = [line.text for line in lines]
    score = texts.index("Your score (min 0.0, max 1.0)") + 1
    classes = {score - 1: "label", score: "score"}
    shown = "".join(
        f'<p class="{classes.get(at, "line")}">{_text(line)}</p>' for at, line in enumerate(lines)
    )
    return f'<div class="text paid">{_tag("h1", thanks)}{shown}</div>'


def _head(page: Page) -> tuple[tuple[str, str], list[Element]]:
    """The wish and the button back to the search as HTML, and the elements that follow."""
    label, instruction, back, *rest = page.elements
    return (_wish(label, instruction), _button(back)), rest


def _wish(label: Element, instruction: Element) -> str:
    return f'<section class="wish">{_tag("h4", label)}{_tag("p", instruction)}</section>'


def _search_box(text: str, keywords: str = "") -> str:
    named = f">{escape(text)}" if text else f' aria-label="Search">{_LENS}'
    return (
        f'<form class="search" role="search" action="/results"><input id="{SEARCH_ID}" name="q" '
        f'type="text" maxlength="{MAX_SEARCH}" required autocomplete="off" '
        f'aria-label="Search for products" value="{escape(keywords)}">'
        f'<button type="submit"{named}</button></form>'
    )


def _button(element: Element) -> str:
    return f'<a class="button" {_id(element)} href="{_address(element)}">{_text(element)}</a>'


def _tag(tag: str, element: Element) -> str:
    return f'<{tag} class="{element.kind}">{_text(element)}</{tag}>'


def id_of(link: View) -> str:
    """The id of the element that leads to a view; pages have one for each."""
    return f"to:{address_of(link)}"


def _id(element: Element) -> str:
    assert element.link is not None  # only buttons and the like come here
    return f'id="{escape(id_of(element.link))}"'


def _address(element: Element) -> str:
    assert element.link is not None
    return escape(address_of(element.link))


def _text(element: Element) -> str:
    return escape(element.source).replace("\r", "&#13;")


@lru_cache(maxsize=1)
def _style() -> str:
    """The style sheet, without what only its readers need."""
    text = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/|\n\s*", "", text, flags=re.DOTALL)
