"""The shop as a site: a WSGI application that serves one customer, with hooks for its state.

Where a customer is stands in the address, so a page can be opened again, and in several tabs. Only
a purchase changes something: it is a POST, ends the episode, and is answered with its receipt.

To look at it with a browser of your own:

    python -m sandboxgym.sandboxes.webshop.site --goal 3
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from sandboxgym.sandboxes.webshop import opening, storefront
from sandboxgym.sandboxes.webshop.addresses import address_of, view_at
from sandboxgym.sandboxes.webshop.goals import DEFAULT_SEED
from sandboxgym.sandboxes.webshop.pages import View
from sandboxgym.sandboxes.webshop.session import Session
from sandboxgym.sandboxes.webshop.shop import Shop

Environ = dict[str, Any]
Answer = tuple[str, list[tuple[str, str]], str]  # status, headers, document
StartResponse = Callable[[str, list[tuple[str, str]]], Any]

# Nothing is kept by the browser, so that going back shows the page anew. No script is needed.
_HEADERS = [
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
]
_NOT_FOUND: Answer = (
    "404 Not Found",
    [],
    "<!DOCTYPE html><title>Not found</title><p>There is no such page in this shop.</p>",
)


class ShopSite:
    """The application.

    Args:
        shop: What is sold.
        customer: Makes the session of a customer with the goal of that index.
    """

    def __init__(self, shop: Shop, customer: Callable[[int], Session]) -> None:
        self._shop = shop
        self._customer = customer
        self.enter(0)

    def enter(self, goal: int) -> None:
        """Send a new customer in."""
        self.goal, self.session = goal, self._customer(goal)

    def get_state(self) -> dict[str, Any]:
        """The goal, and where the customer is."""
        return {"goal": self.goal, **self.session.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from there."""
        self.enter(state["goal"])
        self.session.set_state(state)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        status, headers, text = self._answer(environ)
        start_response(status, [*headers, *_HEADERS])
        return [text.encode("utf-8", "replace")]

    def _answer(self, environ: Environ) -> Answer:
        view = _asked_for(environ)
        if view is None:
            return _NOT_FOUND
        if not self.session.done:
            buying = view.page == "done"
            if buying and environ["REQUEST_METHOD"] != "POST":
                return _moved(replace(view, page="item"))
            if view.page == "results" and not view.keywords:
                return _moved(View())
            if not self.session.go(view):
                return _NOT_FOUND
            if buying:
                return _moved(view)
        return "200 OK", [], storefront.document(self.session.page, self._shop.catalogue)


def _asked_for(environ: Environ) -> View | None:
    path = quote(environ["PATH_INFO"].encode("latin-1"))
    query = environ.get("QUERY_STRING", "")
    view = view_at(f"{path}?{query}" if query else path)
    return None if view is None else replace(view, keywords=view.keywords.lower())


def _moved(view: View) -> Answer:
    return "303 See Other", [("Location", address_of(view))], ""


def main() -> None:
    """Serve the shop to browsers of this machine."""
    from wsgiref.simple_server import make_server

    parser = argparse.ArgumentParser(description="Serve the shop to browsers of this machine.")
    parser.add_argument("--catalogue", help="a file or folder of WebShop; else the generated one")
    parser.add_argument("--goal", type=int, default=0, help="the index of the goal")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    shop = opening.open_shop(arguments.catalogue)
    nouns = opening.open_nouns("builtin")
    goals = shop.goals("synthetic", DEFAULT_SEED)
    site = ShopSite(shop, lambda goal: Session(shop, goals[goal], goals.prices, nouns))
    site.enter(arguments.goal)
    with make_server("127.0.0.1", arguments.port, site) as server:
        print(f"http://127.0.0.1:{arguments.port}/  (Ctrl+C ends it)")
        server.serve_forever()


if __name__ == "__main__":
    main()
