"""What a customer may be sent for: goals, made of products, in an order that a seed decides."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.webshop.catalogue import Catalogue, GoalKind, Product, names_on_path
from sandboxgym.sandboxes.webshop.prices import PriceList, limit_text

Split = Literal["train", "eval", "test", "all"]
MAX_GOALS = 50_000_000
DEFAULT_SEED = 233  # that of the original, so that the order of goals is the one of the field


@dataclass(frozen=True, slots=True)
class Goal:
    """What a customer wants.

    Attributes:
        asin: A product that has all of it.
        title: Its title.
        query: The words under which it is sorted.
        category: Its path of names.
        instruction: The wish in words, all that an agent is told.
        attributes: What the product should have.
        options: What should be chosen: values by name, or values alone where a person wrote them.
        price_limit: The most that it may cost.
    """

    asin: str
    title: str
    query: str
    category: str
    instruction: str
    attributes: tuple[str, ...]
    options: dict[str, str] | tuple[str, ...]
    price_limit: float

    @property
    def categories(self) -> tuple[str, ...]:
        """The names on the path of `category`."""
        return names_on_path(self.category)

    @property
    def wanted_options(self) -> Sequence[str | tuple[str, str]]:
        """The options as pairs of name and value, or as values where no names are known."""
        return list(self.options.items()) if isinstance(self.options, dict) else self.options


def goal_of(product: Product, kind: GoalKind, number: int, prices: PriceList) -> Goal:
    """The goal of that number among those that are made of a product."""
    if kind == "human":
        wish = product.wishes[number]
        limit = prices.limit(product, number)
        text = wish.text.strip(".") + limit_text(limit)
        return _goal(product, text, wish.attributes, wish.options, limit)
    limit = prices.limit(product)
    options = _combination(product, number)
    wanted = ", and ".join(f"{name}: {value}" for name, value in options.items())
    text = f"{product.instruction}{wanted and f' with {wanted}'}{limit_text(limit)}"
    return _goal(product, text, product.instruction_attributes, options, limit)


def _combination(product: Product, number: int) -> dict[str, str]:
    """One of all combinations of values; that of the last name changes fastest."""
    chosen: dict[str, str] = {}
    for name in sorted(product.options, reverse=True):
        values = product.options[name]
        number, place = divmod(number, len(values))
        chosen[name] = values[place]
    return dict(reversed(chosen.items()))


def _goal(
    product: Product,
    text: str,
    attributes: tuple[str, ...],
    options: dict[str, str] | tuple[str, ...],
    limit: float,
) -> Goal:
    return Goal(
        asin=product.asin,
        title=product.title,
        query=product.query,
        category=product.category,
        instruction=text,
        attributes=attributes,
        options=options,
        price_limit=limit,
    )


class Goals(Sequence[Goal]):
    """All goals of a catalogue in shuffled order; each is made when it is asked for.

    Args:
        catalogue: What they are made of.
        kind: "synthetic" for combinations of options, "human" for what people wrote.
        seed: Decides the order, prices and limits; nothing else does.
        order: The order, where it is known.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        kind: GoalKind,
        seed: int,
        order: NDArray[np.int32] | None = None,
    ) -> None:
        self.prices = PriceList(seed)
        self._catalogue = catalogue
        self._kind = kind
        self._ends = np.cumsum(catalogue.goal_counts(kind))
        total = int(self._ends[-1]) if len(self._ends) else 0
        self._order = shuffled(total, seed) if order is None else order

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> Goal: ...

    @overload
    def __getitem__(self, index: slice) -> list[Goal]: ...

    def __getitem__(self, index: int | slice) -> Goal | list[Goal]:
        """The goal at a place of the order."""
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        place = int(self._order[index])
        position = int(np.searchsorted(self._ends, place, side="right"))
        before = int(self._ends[position - 1]) if position else 0
        return goal_of(self._catalogue[position], self._kind, place - before, self.prices)


def shuffled(number: int, seed: int) -> NDArray[np.int32]:
    """The order in which `number` goals come: a function of these two alone.

    Raises:
        GameFileError: There are more than `MAX_GOALS`.
    """
    if number > MAX_GOALS:
        raise GameFileError(
            f"the catalogue makes {number} goals, over the limit of {MAX_GOALS}: take fewer "
            "products with num_products, or goals='human'"
        )
    order = list(range(number))
    random.Random(seed).shuffle(order)
    return np.array(order, np.int32)


def part(split: Split, total: int) -> range:
    """Which of `total` goals belong to a split.

    As in the field, "test" is the first 500, "eval" the next 1,000 and "train" the rest. Where
    there are fewer than 3,000 goals, "test" is the first sixth and "eval" the next third.

    Raises:
        ValueError: There is no such split.
    """
    test = min(500, total // 6)
    evaluation = min(1000, total // 3)
    parts: dict[str, range] = {
        "test": range(test),
        "eval": range(test, test + evaluation),
        "train": range(test + evaluation, total),
        "all": range(total),
    }
    if split not in parts:
        raise ValueError(f"split={split!r}: choose among {', '.join(parts)}")
    return parts[split]
