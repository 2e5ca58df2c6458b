"""Families of products: siblings of one brand and model that differ in what they are and offer.

That makes a search a real task: the siblings of a product come up together, and which of them is
"bpa free" and comes in "sage green" has to be read, on the page if not in the title.
"""

from __future__ import annotations

from dataclasses import dataclass

from sandboxgym.sandboxes.webshop.synthetic.dice import Dice
from sandboxgym.sandboxes.webshop.synthetic.vocabulary import Axis, Feature, Kind, Vocabulary

LARGEST = 7  # siblings
_CENTS = (99, 99, 95, 49, 0)
_WITHOUT_OPTIONS = 0.12
_WITHOUT_PRICE = 0.04
_WITH_PRICE_RANGE = 0.2


@dataclass(frozen=True)
class Family:
    """What siblings share."""

    kind: Kind
    brand: str
    model: str
    style: str
    head: str
    features: list[Feature]
    palettes: list[tuple[Axis, list[str]]]
    price: float


@dataclass(frozen=True)
class Member:
    """One product: its own selection of features and options, and its price as it is written."""

    family: Family
    features: list[Feature]
    options: dict[str, list[str]]
    pricing: str


def family(dice: Dice, words: Vocabulary) -> Family:
    """Draw a family."""
    kind = dice.choice(words.kinds)
    return Family(
        kind=kind,
        brand=_brand(dice, words),
        model=dice.choice(words.models),
        style=dice.choice(kind.styles),
        head=dice.choice(kind.heads),
        features=dice.some(kind.features, dice.between(1, 2)),
        palettes=[(axis, _palette(dice, axis)) for axis in kind.axes],
        # Squared: cheap things are more common than dear ones.
        price=kind.cheapest + (kind.dearest - kind.cheapest) * (dice.between(0, 100) / 100) ** 2,
    )


def member(dice: Dice, family: Family) -> Member:
    """Draw one of the siblings."""
    others = [feature for feature in family.kind.features if feature not in family.features]
    features = family.features + dice.some(others, dice.between(1, 3))
    return Member(
        family=family,
        features=dice.some(features, len(features)),
        options=_options(dice, family),
        pricing=_pricing(dice, family.price),
    )


def _brand(dice: Dice, words: Vocabulary) -> str:
    name = dice.choice(words.first) + dice.choice(words.second)
    if dice.chance(0.3):
        name += dice.choice(words.second)
    return f"{name} {dice.choice(words.suffixes)}" if dice.chance(0.2) else name


def _palette(dice: Dice, axis: Axis) -> list[str]:
    number = dice.between(3, 6)
    return dice.run(axis.values, number) if axis.ordered else dice.selection(axis.values, number)


def _options(dice: Dice, family: Family) -> dict[str, list[str]]:
    if dice.chance(_WITHOUT_OPTIONS):
        return {}
    offered = {}
    for axis, palette in family.palettes:
        number = dice.between(2, min(5, len(palette)))
        values = dice.run(palette, number) if axis.ordered else dice.selection(palette, number)
        offered[axis.name.title()] = values
    return offered


def _pricing(dice: Dice, base: float) -> str:
    if dice.chance(_WITHOUT_PRICE):
        return ""
    price = _price(dice, base)
    if dice.chance(_WITH_PRICE_RANGE):
        return f"${price}${_price(dice, base * 1.6)}"
    return f"${price}"


def _price(dice: Dice, base: float) -> str:
    dollars = int(base * dice.between(85, 120) / 100)
    return f"{dollars}.{dice.choice(_CENTS):02}"
