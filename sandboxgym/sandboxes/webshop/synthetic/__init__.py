"""A catalogue of our own, generated from a seed, for playing WebShop without its scraped data."""

from __future__ import annotations

from sandboxgym.sandboxes.webshop.synthetic.listings import (
    DEFAULT_NUMBER,
    FULL_NUMBER,
    Listing,
    listings,
    write,
)

__all__ = ["DEFAULT_NUMBER", "FULL_NUMBER", "Listing", "listings", "write"]
