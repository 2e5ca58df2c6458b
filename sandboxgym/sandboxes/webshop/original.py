"""Products from files in the format of the original WebShop.

There are three: products (`items_shuffle.json`, or `items_shuffle_1000.json`), attributes with the
beginning of an instruction (`items_ins_v2.json`), and instructions by people
(`items_human_ins.json`). Each may be packed with gzip. They come from the web and are checked.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from sandboxgym.core.errors import DataNotFoundError, GameFileError
from sandboxgym.sandboxes.webshop.catalogue import Instruction, Product
from sandboxgym.sandboxes.webshop.prices import parse_prices

MAX_PRODUCT = 1_000_000  # characters of one entry
_NO_ATTRIBUTES = ("DUMMY_ATTR",)
_CHUNK = 1 << 20
_UNREADABLE = (ValueError, OSError, EOFError, RecursionError)
_NOTHING = re.compile(r"[\s,]*")  # what stands between two entries
_PRODUCTS = ("items_shuffle*.json", "items_shuffle*.json.gz")
_ATTRIBUTES = ("items_ins_v2*.json", "items_ins_v2*.json.gz")
_HUMAN = ("items_human_ins*.json", "items_human_ins*.json.gz")


@dataclass(frozen=True)
class Files:
    """The files of a catalogue; only the products have to be there."""

    products: Path
    attributes: Path | None
    human: Path | None

    @property
    def identity(self) -> list[Any]:
        """What tells these files from others and from other versions of themselves."""
        given = [path for path in (self.products, self.attributes, self.human) if path]
        return [[str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns] for p in given]


def find_files(catalogue: str | Path) -> Files:
    """The files of a catalogue, of which either the one with products is given or their folder.

    The others are looked for next to it. Where a folder has several sizes ("…_1000"), those of the
    same size belong together, and the full one is taken first.

    Raises:
        DataNotFoundError: There is no such file, or none with products in the folder.
    """
    given = Path(catalogue)
    products = _first(given, _PRODUCTS) if given.is_dir() else given
    if products is None or not products.is_file():
        raise DataNotFoundError(
            f"there is no catalogue at {given}: give items_shuffle.json (or _1000.json) of WebShop "
            "or its folder, or leave catalogue out for a generated one"
        )
    folder = products.parent
    size = "_1000" if "_1000" in products.name else ""
    attributes = _first(folder, tuple(f"items_ins_v2{size}.json{x}" for x in ("", ".gz")))
    return Files(products, attributes or _first(folder, _ATTRIBUTES), _first(folder, _HUMAN))


def read_products(files: Files, number: int | None = None) -> Iterator[Product]:
    """The products of a catalogue, in order; of equal asins only the first.

    The file of products is read piece by piece, so that its size does not matter.

    Args:
        files: Where they are.
        number: Take only so many entries of the file.

    Raises:
        GameFileError: A file is not in the format.
    """
    attributes = _whole(files.attributes)
    human = _whole(files.human)
    seen: set[str] = set()
    for entry in islice(_entries(files.products), number):
        try:
            asin = entry["asin"]
            if asin == "nan" or len(asin) > 10 or asin in seen:
                continue
            seen.add(asin)
            yield product_of(entry, attributes.get(asin, {}), human.get(asin, []))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            asin = str(entry.get("asin"))[:20] if isinstance(entry, dict) else "without an asin"
            raise GameFileError(
                f"{files.products.name}: the product {asin} is not in WebShop's format: {error!r}"
            ) from error


def product_of(
    entry: dict[str, Any], attributes: dict[str, Any], human: list[dict[str, Any]]
) -> Product:
    """Make a product of its entries in the three files.

    Args:
        entry: What the file of products has.
        attributes: What the file of attributes has for it; empty where there is nothing.
        human: What the file of instructions by people has.
    """
    features = entry["small_description"]
    instruction = attributes.get("instruction")
    return Product(
        asin=_text(entry["asin"]),
        title=_text(entry["name"]),
        description=_text(entry["full_description"]),
        features=_texts(features if isinstance(features, list) else [features]),
        department=_text(entry["category"]),
        query=_text(entry["query"]).lower().strip(),
        category=_text(entry["product_category"]),
        prices=parse_prices(entry.get("pricing")),
        options=_options(entry["customization_options"] or {}),
        attributes=_texts(attributes.get("attributes", _NO_ATTRIBUTES)),
        instruction=None if instruction is None else _text(instruction),
        instruction_attributes=_texts(attributes.get("instruction_attributes") or ()),
        instructions=tuple(
            Instruction(
                _text(wish["instruction"]),
                _texts(wish["instruction_attributes"]),
                _texts(wish["instruction_options"]),
            )
            for wish in human
        ),
    )


def _options(customization: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {
        _text(name).lower(): tuple(
            _text(value["value"]).strip().replace("/", " | ").lower() for value in values
        )
        for name, values in customization.items()
        if values is not None
    }


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {value!r:.100}")
    if not value.isascii():
        value.encode()  # there may be half characters in it
    return value


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(_text, values))


def _first(folder: Path, patterns: tuple[str, ...]) -> Path | None:
    found = [path for pattern in patterns for path in folder.glob(pattern) if path.is_file()]
    return min(found, key=lambda path: (len(path.name), path.name), default=None)


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def _whole(path: Path | None) -> dict[str, Any]:
    """A file that is one object, by asin."""
    if path is None:
        return {}
    try:
        with _open(path) as file:
            content = json.load(file)
    except _UNREADABLE as error:
        raise GameFileError(f"{path.name} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise GameFileError(f"{path.name} should hold one object with asins as keys")
    return content


def _after_nothing(piece: str, at: int) -> int:
    match = _NOTHING.match(piece, at)
    return match.end() if match else at


def _entries(path: Path) -> Iterator[Any]:
    """The entries of a file that is one list, read piece by piece."""
    decoder = json.JSONDecoder()
    try:
        with _open(path) as file:
            piece = file.read(_CHUNK)
            at = _after_nothing(piece, 0)
            if piece[at : at + 1] != "[":
                raise GameFileError(f"{path.name} should hold one list of products")
            at += 1
            while True:
                at = _after_nothing(piece, at)
                if piece[at : at + 1] == "]":
                    return
                try:
                    entry, at = decoder.raw_decode(piece, at)
                except json.JSONDecodeError:
                    more = file.read(_CHUNK)
                    if not more:
                        raise
                    if len(piece) - at > MAX_PRODUCT:
                        raise GameFileError(
                            f"{path.name} has an entry of more than {MAX_PRODUCT} characters"
                        ) from None
                    piece, at = piece[at:] + more, 0
                    continue
                yield entry
    except GameFileError:
        raise
    except _UNREADABLE as error:
        raise GameFileError(f"{path.name} cannot be read: {error}") from error
