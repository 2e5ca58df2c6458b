"""A shop of a few products, small enough to know by heart."""

from __future__ import annotations

from typing import Any

from sandboxgym.sandboxes.webshop.catalogue import Instruction, ListedCatalogue, Product
from sandboxgym.sandboxes.webshop.goals import Goal
from sandboxgym.sandboxes.webshop.nouns import Nouns
from sandboxgym.sandboxes.webshop.prices import PriceList
from sandboxgym.sandboxes.webshop.session import Session
from sandboxgym.sandboxes.webshop.shop import Shop

SHELF = "\u203a"


class EveryWord:
    """Takes every word for a noun."""

    id = "every-word"

    def nouns(self, title: str) -> list[str]:
        return title.lower().split()


def product(asin: str, title: str, **other: Any) -> Product:
    given: dict[str, Any] = {
        "description": "",
        "features": ("",),
        "department": "fashion",
        "query": "shoes",
        "category": f"Clothing {SHELF} Men {SHELF} Shoes",
        "prices": (20.0,),
        "options": {},
        "attributes": ("rubber sole",),
    }
    return Product(asin, title, **(given | other))


LOAFERS = product(
    "LOAFERS",
    "Red leather loafers",
    description="Made by hand.",
    features=("Rubber sole", "Easy to clean"),
    prices=(15.0, 30.0),
    options={"size": ("8", "8.5"), "color": ("red", "dark blue")},
    attributes=("rubber sole", "hand made"),
    instruction="Find me hand made shoes",
    instruction_attributes=("hand made",),
    instructions=(
        Instruction("i want red loafers.", ("rubber sole",), ("red",)),
        Instruction("something nice", (), ()),
    ),
)
BOOTS = product("BOOTS", "Green rain boots", instruction="Find me", instruction_attributes=("a",))
LAMP = product(
    "LAMP",
    "A <b>lamp</b> & a shade",
    query="lamps",
    category=f"Home {SHELF} Lighting",
    description="  ",
    features=("bright", "", "\n"),
)
CATALOGUE = ListedCatalogue([LOAFERS, BOOTS, LAMP])
GOAL = Goal(
    asin="LOAFERS",
    title=LOAFERS.title,
    query=LOAFERS.query,
    category=LOAFERS.category,
    instruction="red loafers",
    attributes=("rubber sole", "hand made"),
    options={"size": "8", "color": "red"},
    price_limit=40.0,
)


def session(goal: Goal = GOAL, shop: Shop | None = None) -> Session:
    return Session(shop or Shop(CATALOGUE), goal, PriceList(0), Nouns(EveryWord()))
