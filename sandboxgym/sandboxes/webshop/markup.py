"""Pages as HTML. All texts are escaped: products come from the web."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from sandboxgym.sandboxes.webshop.addresses import address_of
from sandboxgym.sandboxes.webshop.pages import Element, Page, View

_TAGS = {
    "brand": "h2",
    "label": "h4",
    "instruction": "p",
    "count": "h3",
    "title": "h4",
    "price": "h5",
    "rating": "h5",
    "option_name": "h4",
    "description": "p",
    "feature": "li",
    "receipt": "p",
}


def as_html(page: Page, address: Callable[[View], str] = address_of) -> str:
    """A page as a document of HTML without style, for agents that read HTML.

    The search box has the id "search_input", buttons have the class "btn", products among the
    results are links of the class "product-link", and options are radio buttons, as code for
    WebShop expects.

    Args:
        page: The page.
        address: Where a view is to be found.
    """
    option = ""
    lines = ["<!DOCTYPE html>", "<html>", "<body>"]
    for element in page.elements:
        option = element.text if element.kind == "option_name" else option
        lines.append(_element(element, option, page, address))
    return "\n".join([*lines, "</body>", "</html>"])


def _element(element: Element, option: str, page: Page, address: Callable[[View], str]) -> str:
    text = escape(element.source)
    link = escape(address(element.link)) if element.link else ""
    if element.kind == "button" and element.link is None:
        return (
            f'<form action="/results"><input id="search_input" type="text" name="q">'
            f'<button type="submit" class="btn">{text}</button></form>'
        )
    if element.kind == "button":
        return f'<a href="{link}"><button type="button" class="btn">{text}</button></a>'
    if element.kind == "asin":
        return f'<a class="product-link" href="{link}">{text}</a>'
    if element.kind == "option":
        checked = " checked" if (option, element.text) in page.view.options else ""
        name = escape(option)
        return (
            f'<label><input type="radio" name="{name}" value="{text}" data-url="{link}"{checked}>'
            f"{text}</label>"
        )
    tag = _TAGS[element.kind]
    return f'<{tag} class="{element.kind}">{text}</{tag}>'
