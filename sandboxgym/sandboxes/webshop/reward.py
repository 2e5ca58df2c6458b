"""What a purchase is worth: how much of what the goal asks for the product has.

The order in which floats are combined is the original's, so that rewards are equal to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sandboxgym.sandboxes.webshop.catalogue import Product
from sandboxgym.sandboxes.webshop.fuzz import token_set_ratio
from sandboxgym.sandboxes.webshop.goals import Goal
from sandboxgym.sandboxes.webshop.nouns import Nouns

ALIKE = 85  # of 100; above it two texts count as the same
_TITLE_WITHOUT_NOUNS = 0.2

# The first of these that a value contains stands for the whole value.
_COLOUR_WORDS = """
    alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown
    burgundy camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee
    cognac copper coral cranberry cream crystal dark denim eggplant elephant espresso fuchsia gold
    granite grape graphite grass gray green grey heather indigo ivory ivy khaki lavender lemon
    leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor mushroom
    mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal
    rust sand sapphire seashell silver skull slate steel stone stonewash sunflower tan taupe teal
    tiger turquoise violet walnut wheat white wine yellow
"""
_COLOURS = tuple(_COLOUR_WORDS.split())


@dataclass(frozen=True, slots=True)
class Reward:
    """The parts of a reward.

    Attributes:
        total: The reward, from 0 to 1.
        r_type: Whether it is the right kind of product: 1, 0.5, 0.1 or 0; the rest is scaled by it.
        query_match: Both products are sorted under the same words.
        category_match: Both have two names or more of their paths in common.
        title_score: Which part of the nouns in the goal's title is in that of the product.
        r_att: Which part of the attributes that the goal asks for the product has.
        r_option: Which part of the options that the goal asks for was chosen; None if of none.
        r_price: Whether it costs no more than the goal allows.
    """

    total: float
    r_type: float
    query_match: bool
    category_match: bool
    title_score: float
    r_att: float
    r_option: float | None
    r_price: bool


def reward(
    product: Product, goal: Goal, price: float, chosen: Mapping[str, str], nouns: Nouns
) -> Reward:
    """Judge a purchase.

    Args:
        product: What was bought.
        goal: What was asked for.
        price: What it costs.
        chosen: The value chosen for each option.
        nouns: Finds the nouns of titles.
    """
    query_match = product.query == goal.query
    category_match = len({*product.categories} & {*goal.categories}) >= 2
    title_score = _title_score(product.title, goal.title, nouns)
    r_type = _type_score(query_match or category_match, title_score)
    attributes = sum(_has_attribute(product, wanted) for wanted in goal.attributes)
    options = _matching_options(chosen.values(), goal.wanted_options)
    affordable = price <= goal.price_limit
    wanted = len(goal.attributes) + len(goal.options) + 1
    return Reward(
        total=(attributes + options + affordable) / wanted * r_type,
        r_type=r_type,
        query_match=query_match,
        category_match=category_match,
        title_score=title_score,
        r_att=attributes / len(goal.attributes),
        r_option=options / len(goal.options) if goal.options else None,
        r_price=affordable,
    )


def _title_score(title: str, wanted: str, nouns: Nouns) -> float:
    wanted_nouns = nouns.of(wanted)
    if not wanted_nouns:
        return _TITLE_WITHOUT_NOUNS
    return len({*nouns.of(title)} & {*wanted_nouns}) / len(wanted_nouns)


def _type_score(same_shelf: bool, title_score: float) -> float:
    if title_score == 0.0:
        return 0.0
    if title_score < 0.1:
        return 0.1
    return 1.0 if same_shelf or title_score > 0.2 else 0.5


def _has_attribute(product: Product, wanted: str) -> bool:
    return (
        any(token_set_ratio(has, wanted) > ALIKE for has in product.attributes)
        or wanted in product.title.lower()
        or wanted in " ".join(product.features).lower()
        or wanted in product.description.lower()
    )


def _matching_options(chosen: Iterable[str], wanted: Iterable[str | tuple[str, str]]) -> int:
    have = [_colour_of(value) for value in chosen]
    return sum(
        any(token_set_ratio(value, wish) > ALIKE for value in have)
        for wish in map(_colour_of, wanted)
    )


def _colour_of(value: str | tuple[str, str]) -> str | tuple[str, str]:
    """The colour in a value, or the value itself.

    A pair of name and value has a colour only where one of the two is its very name.
    """
    return next((colour for colour in _COLOURS if colour in value), value)
