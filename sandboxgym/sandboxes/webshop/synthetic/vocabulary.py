"""The words that products are made of, read from the files in `words/`.

A file per department (`beauty.ini` ...) has a section `[department]`, with `stories` and `asides`
for descriptions and bullet points and `tails` for titles, and a section for each kind of product,
named by the query that finds it:

- `path`: where it stands in the shop, from the department down; kinds that share two parts of it
  are related;
- `heads`: what it is called; `styles`: what tells one family of it from the next;
- `features`: phrases from `features.ini`; `options`: sections of `options.ini`;
- `price`: from - to, in dollars.
"""

from __future__ import annotations

from configparser import ConfigParser, SectionProxy
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

DEPARTMENTS = ("beauty", "electronics", "fashion", "garden", "grocery")


@dataclass(frozen=True)
class Feature:
    """Something that a product can have or be.

    Attributes:
        phrase: As people write it, "easy to clean".
        attribute: As WebShop's attributes have it, without stop words: "easy clean".
        role: "is", "with" or "for": where the phrase goes in a sentence.
        sentence: What a bullet point says about it.
    """

    phrase: str
    attribute: str
    role: str
    sentence: str


@dataclass(frozen=True)
class Axis:
    """One thing to choose, such as the size: its name on the page and all its values."""

    name: str
    values: tuple[str, ...]
    ordered: bool


@dataclass(frozen=True)
class Department:
    """What all kinds of one department share."""

    name: str
    stories: tuple[str, ...]
    asides: tuple[str, ...]
    tails: tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of product."""

    department: Department
    query: str
    path: str
    heads: tuple[str, ...]
    styles: tuple[str, ...]
    features: tuple[Feature, ...]
    axes: tuple[Axis, ...]
    cheapest: int
    dearest: int


@dataclass(frozen=True)
class Vocabulary:
    """Everything the generator writes with."""

    kinds: tuple[Kind, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]
    suffixes: tuple[str, ...]
    models: tuple[str, ...]


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """The words, read once."""
    features, axes, names = _features(), _axes(), _read("names")
    kinds = []
    for name in DEPARTMENTS:
        file = _read(name)
        shared = file["department"]
        department = Department(
            name, _lines(shared["stories"]), _lines(shared["asides"]), _list(shared["tails"])
        )
        kinds += [
            _kind(department, file[query], features, axes)
            for query in file.sections()
            if query != "department"
        ]
    brands = names["brands"]
    return Vocabulary(
        kinds=tuple(kinds),
        first=_list(brands["first"]),
        second=_list(brands["second"]),
        suffixes=_list(brands["suffix"]),
        models=_list(names["models"]["words"]),
    )


def _features() -> dict[str, Feature]:
    file = _read("features")
    return {
        phrase: Feature(phrase, phrase.replace(" to ", " ").replace(" and ", " "), role, sentence)
        for role in file.sections()
        for phrase, sentence in file[role].items()
    }


def _axes() -> dict[str, Axis]:
    file = _read("options")
    return {
        name: Axis(part["name"], _list(part["values"]), part.getboolean("ordered", False))
        for name, part in file.items()
        if name != file.default_section
    }


def _kind(
    department: Department,
    section: SectionProxy,
    features: dict[str, Feature],
    axes: dict[str, Axis],
) -> Kind:
    cheapest, dearest = section["price"].split("-")
    return Kind(
        department=department,
        query=section.name,
        path=section["path"],
        heads=_list(section["heads"]),
        styles=_list(section["styles"]),
        features=tuple(features[phrase] for phrase in _list(section["features"])),
        axes=tuple(axes[name] for name in _list(section["options"], ";")),
        cheapest=int(cheapest),
        dearest=int(dearest),
    )


def _read(name: str) -> ConfigParser:
    file = ConfigParser(delimiters=("=",), interpolation=None)
    words = resources.files(__package__).joinpath("words").joinpath(f"{name}.ini")
    file.read_string(words.read_text(encoding="utf-8"), source=str(words))
    return file


def _list(text: str, separator: str = ",") -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(separator))


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.splitlines() if line)
