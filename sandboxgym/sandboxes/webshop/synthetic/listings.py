"""Products in the schema of WebShop's files, as many as asked for, one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.webshop.synthetic import families, wording
from sandboxgym.sandboxes.webshop.synthetic.dice import Dice
from sandboxgym.sandboxes.webshop.synthetic.vocabulary import vocabulary

DEFAULT_NUMBER = 1000
FULL_NUMBER = 1_180_000  # about as many as the original has
_BLOCK = 100  # products that are drawn together and mixed, so that siblings do not stand in a row
_WITH_INSTRUCTION = 0.6
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Listing:
    """A product and what goes with it in the other files.

    Attributes:
        product: An entry of `items_shuffle.json`.
        instruction: The value under its asin in `items_ins_v2.json`.
        human: The value under its asin in `items_human_ins.json`; empty where it has none.
    """

    product: dict[str, Any]
    instruction: dict[str, Any]
    human: list[dict[str, Any]]

    @property
    def asin(self) -> str:
        """The product's key in all three files."""
        return str(self.product["asin"])


def listings(number: int = DEFAULT_NUMBER, seed: int = 0) -> Iterator[Listing]:
    """The first `number` products of the catalogue that `seed` stands for.

    A smaller catalogue is the beginning of a larger one. Nothing is kept: a million products take
    no more memory than one hundred.
    """
    return islice(_all(seed), number)


def write(folder: str | Path, number: int = DEFAULT_NUMBER, seed: int = 0) -> list[Path]:
    """Write a catalogue as the three files that WebShop reads, for use elsewhere.

    Returns:
        The files: products, attributes and instructions, instructions by people.
    """
    made = list(listings(number, seed))
    contents: dict[str, Any] = {
        "items_shuffle.json": [listing.product for listing in made],
        "items_ins_v2.json": {listing.asin: listing.instruction for listing in made},
        "items_human_ins.json": {listing.asin: listing.human for listing in made if listing.human},
    }
    files = []
    for name, content in contents.items():
        file = Path(folder) / name
        file.write_text(json.dumps(content), encoding="utf-8")
        files.append(file)
    return files


def _all(seed: int) -> Iterator[Listing]:
    block = 0
    while True:
        dice = Dice("webshop", seed, block)
        members: list[families.Member] = []
        while len(members) < _BLOCK:
            family = families.family(dice, vocabulary())
            members += [
                families.member(dice, family) for _ in range(dice.between(1, families.LARGEST))
            ]
        mixed = dice.some(members[:_BLOCK], _BLOCK)
        for at, member in enumerate(mixed, start=block * _BLOCK):
            yield _listing(dice, member, at)
        block += 1


def _listing(dice: Dice, member: families.Member, number: int) -> Listing:
    kind = member.family.kind
    asin = _asin(number)
    product = {
        "name": wording.title(dice, member),
        "full_description": wording.description(dice, member),
        "images": [],
        "product_category": kind.path,
        "average_rating": "",
        "small_description": wording.bullets(dice, member),
        "customization_options": _customization(member.options),
        "asin": asin,
        "category": kind.department.name,
        "query": kind.query,
        "page": number,
        "pricing": member.pricing,
    }
    instruction: dict[str, Any] = {"attributes": [f.attribute for f in member.features]}
    if not dice.chance(_WITH_INSTRUCTION):
        return Listing(product, instruction, [])
    wanted = dice.some(member.features, dice.between(1, 3))
    instruction["instruction"] = wording.request(kind.query, wanted)
    instruction["instruction_attributes"] = [f.attribute for f in wanted]
    return Listing(product, instruction, [_human(dice, member, asin)])


def _human(dice: Dice, member: families.Member, asin: str) -> dict[str, Any]:
    wanted = dice.some(member.features, dice.between(1, 2))
    chosen = {name: dice.choice(values) for name, values in member.options.items()}
    return {
        "asin": asin,
        "instruction": wording.wish(dice, member.family.head, wanted, chosen),
        "attributes": [f.attribute for f in member.features],
        "options": [f"{name.lower()}: {value}" for name, value in chosen.items()],
        "instruction_attributes": [f.attribute for f in wanted],
        "instruction_options": list(chosen.values()),
    }


def _customization(options: dict[str, list[str]]) -> Any:
    if not options:
        return ""
    return {
        name: [
            {"value": value, "is_selected": at == 0, "price_string": "", "image": None}
            for at, value in enumerate(values)
        ]
        for name, values in options.items()
    }


def _asin(number: int) -> str:
    """Ten characters, different for every number; "SG" sets them apart from the original's."""
    left = (number * 1_580_030_173 + 987_654_321) % 36**8  # odd and no multiple of 3: one to one
    digits = ""
    for _ in range(8):
        left, digit = divmod(left, 36)
        digits = _DIGITS[digit] + digits
    return "SG" + digits
