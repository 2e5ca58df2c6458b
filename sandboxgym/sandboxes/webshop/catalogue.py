"""What a shop sells: products, and the catalogue that holds them in order."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

GoalKind = Literal["synthetic", "human"]

DEFAULT_PRICE = 100.0  # of a product that names none
_BEYOND_ALL = 2**31  # goals of one product; so many are refused
CATEGORY_SEPARATOR = "\u203a"  # a single angle quotation mark, ">" for short below


@dataclass(frozen=True, slots=True)
class Instruction:
    """A wish that a person wrote down while looking at a product."""

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """One product, as the shop shows it and as goals are made of it.

    Attributes:
        asin: Its name in the shop, up to 10 characters, in upper case.
        title: What it is called.
        description: A text, possibly empty.
        features: Points of a list; at least one, which may be empty.
        department: One of a few, such as "beauty".
        query: The search words under which it is sorted, lower case: "console tables".
        category: A path of names, with `CATEGORY_SEPARATOR` between: "Home > Furniture > Tables".
        prices: One price in dollars, or the ends of a range from which one is drawn.
        options: The values of each option by its name, all in lower case, in the order shown.
        attributes: What is true of it, lower case: "machine wash".
        instruction: The beginning of goals that ask for it ("Find me … with …"), or None for none.
        instruction_attributes: Those of its attributes that this asks for.
        instructions: Goals in the words of people.
    """

    asin: str
    title: str
    description: str
    features: tuple[str, ...]
    department: str
    query: str
    category: str
    prices: tuple[float, ...]
    options: dict[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    instruction: str | None = None
    instruction_attributes: tuple[str, ...] = ()
    instructions: tuple[Instruction, ...] = ()

    @property
    def price_tag(self) -> str:
        """The price as the shop shows it: "$9.99", or "$9.99 to $12.5"."""
        return " to ".join(f"${price}" for price in self.prices)

    @property
    def categories(self) -> tuple[str, ...]:
        """The names on the path of `category`."""
        return names_on_path(self.category)

    @property
    def wishes(self) -> tuple[Instruction, ...]:
        """The instructions that are goals: those that ask for an attribute."""
        return tuple(wish for wish in self.instructions if wish.attributes)

    def number_of_goals(self, kind: GoalKind) -> int:
        """How many goals are made of it.

        Those of people are its wishes; synthetic ones are all combinations of its options.
        """
        if kind == "human":
            return len(self.wishes)
        if self.instruction is None or not self.instruction_attributes:
            return 0
        return min(math.prod(len(values) for values in self.options.values()), _BEYOND_ALL)

    @property
    def indexed_text(self) -> str:
        """What a search sees of it."""
        options = ", and ".join(f"{name}: {', '.join(v)}" for name, v in self.options.items())
        return " ".join((self.title, self.description, self.features[0], options)).lower()


class Catalogue(ABC):
    """Products in a fixed order, each with its own asin."""

    digest: str
    """Hash of all that it holds; the same digest, the same shop."""

    @abstractmethod
    def __len__(self) -> int:
        """How many products there are."""

    @abstractmethod
    def __getitem__(self, position: int) -> Product:
        """The product at a position."""

    @abstractmethod
    def find(self, asin: str) -> int | None:
        """The position of a product, or None where there is none of that name."""

    def goal_counts(self, kind: GoalKind) -> NDArray[np.int64]:
        """How many goals are made of each product."""
        return np.fromiter((product.number_of_goals(kind) for product in self), np.int64, len(self))

    def __iter__(self) -> Iterator[Product]:
        """All products, in order."""
        return (self[position] for position in range(len(self)))

    def product(self, asin: str) -> Product:
        """The product of that name.

        Raises:
            KeyError: There is none.
        """
        position = self.find(asin)
        if position is None:
            raise KeyError(asin)
        return self[position]


class ListedCatalogue(Catalogue):
    """A catalogue in memory. Of products with the same asin, the first counts."""

    def __init__(self, products: Iterable[Product]) -> None:
        unique: dict[str, Product] = {}
        for product in products:
            unique.setdefault(product.asin, product)
        self._products = list(unique.values())
        self._positions = {asin: i for i, asin in enumerate(unique)}
        self.digest = digest_of(self._products)

    def __len__(self) -> int:
        return len(self._products)

    def __getitem__(self, position: int) -> Product:
        return self._products[position]

    def find(self, asin: str) -> int | None:
        """The position of a product, or None where there is none of that name."""
        return self._positions.get(asin)


def names_on_path(category: str) -> tuple[str, ...]:
    """The names on the path of a category."""
    return tuple(part.strip() for part in category.split(CATEGORY_SEPARATOR))


def digest_of(products: Iterable[Product]) -> str:
    """A hash of all products, in order."""
    encoder = msgspec.msgpack.Encoder()
    check = hashlib.blake2b(digest_size=16)
    for product in products:
        check.update(encoder.encode(product))
    return check.hexdigest()
