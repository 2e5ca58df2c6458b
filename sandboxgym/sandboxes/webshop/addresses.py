"""Views as addresses of a site, and back: what stands in the address is where the customer is."""

from __future__ import annotations

import json
from typing import get_args
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from sandboxgym.sandboxes.webshop.pages import PageName, View

MAX_ADDRESS = 20_000
MAX_NUMBER = 10_000  # of a page of results


def address_of(view: View) -> str:
    """The path and query of a view, such as "/item/B07HP6LVRS?q=loafers&page=1"."""
    path = "/" if view.page == "index" else f"/{view.page}"
    if view.asin:
        path += f"/{quote(view.asin, safe='')}"
    query: dict[str, str] = {}
    if view.page != "index":
        query = {"q": view.keywords, "page": str(view.number)}
    if view.options:
        query["options"] = json.dumps(view.options, separators=(",", ":"))
    return f"{path}?{urlencode(query)}" if query else path


def view_at(address: str) -> View | None:
    """The view at an address, or None where there is none. Whether a product exists is not known.

    Args:
        address: A path with its query, or a whole URL. It may come from anywhere.
    """
    if len(address) > MAX_ADDRESS:
        return None
    try:
        parts = urlsplit(address)
        query = {name: values[-1] for name, values in parse_qs(parts.query, True).items()}
        number = int(query.get("page", "1"))
        options = tuple((str(n), str(v)) for n, v in json.loads(query.get("options", "[]")))
    except (ValueError, TypeError, RecursionError):
        return None
    name, _, asin = parts.path.lstrip("/").partition("/")
    page = name or "index"
    if page not in get_args(PageName) or (page in ("index", "results")) == bool(asin):
        return None
    if not 1 <= number <= MAX_NUMBER:
        return None
    return View(page, query.get("q", ""), number, unquote(asin), options)  # type: ignore[arg-type]
