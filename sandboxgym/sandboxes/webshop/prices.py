"""Prices: how a listing writes them, and how the shop settles on one."""

from __future__ import annotations

import math
import random
import re

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.webshop.catalogue import DEFAULT_PRICE, Product

NO_LIMIT = 1_000_000.0  # what a goal allows where it names no limit
_LIMITS = tuple(10.0 * i for i in range(1, 100))
_NO_DIGIT = re.compile(r"[^\d.]")


def parse_prices(text: str | None) -> tuple[float, ...]:
    """Read "$9.99" or "$9.99 to $1,012.50": one price, or the two ends of a range.

    Raises:
        GameFileError: It is neither of these, nor empty.
    """
    if not text:
        return (DEFAULT_PRICE,)
    try:
        found = tuple(float(_NO_DIGIT.sub("", part)) for part in text.split("$")[1:3])
    except ValueError:
        found = ()
    if not found or not all(map(math.isfinite, found)):
        raise GameFileError(f'{text[:100]!r} is no price: write "$9.99", or "$9.99 to $12.50"')
    return found


class PriceList:
    """What each product costs, and what a goal for it may allow.

    Both are drawn from a generator of the seed and the product's asin. So they depend on nothing
    else: not on other products, on the order of goals, or on who asks first.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def price(self, product: Product) -> float:
        """The one price that a product has."""
        return self._settled(product)[0]

    def limit(self, product: Product, number: int = 0) -> float:
        """The most that the product's goal of that number may cost, or `NO_LIMIT`.

        It is the larger of two among the next four multiples of ten above the price.
        """
        price, generator = self._settled(product)
        above = [limit for limit in _LIMITS if limit > price][:4]
        if len(above) < 2:
            return NO_LIMIT
        for _ in range(number):
            generator.sample(above, 2)
        return max(generator.sample(above, 2))

    def _settled(self, product: Product) -> tuple[float, random.Random]:
        generator = random.Random(f"{self.seed} {product.asin}")
        price = generator.uniform(*product.prices) if len(product.prices) > 1 else product.prices[0]
        return price, generator


def limit_text(limit: float) -> str:
    """How a goal's instruction ends."""
    return "" if limit == NO_LIMIT else f", and price lower than {limit:.2f} dollars"
