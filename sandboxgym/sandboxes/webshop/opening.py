"""Opening a shop by the name of its catalogue; environments of one process share it.

Small catalogues are read anew by each process, within a second. Those with more products than
`LARGE` are made into files once, in `$SANDBOXGYM_CACHE/webshop` or `~/.cache/sandboxgym/webshop`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.webshop import original, stored, synthetic
from sandboxgym.sandboxes.webshop.catalogue import ListedCatalogue, Product, digest_of
from sandboxgym.sandboxes.webshop.nouns import Nouns, NounTagger
from sandboxgym.sandboxes.webshop.shop import Shop
from sandboxgym.sandboxes.webshop.tagger import tagger as tagger_named

LARGE = 20_000
_ENOUGH_TO_TELL = synthetic.DEFAULT_NUMBER
_LARGE_FILE = 50_000_000  # bytes; a product has some thousands


@dataclass(frozen=True)
class Source:
    """Where products come from.

    Attributes:
        identity: What tells it from other sources, as text.
        large: Whether it has so many that they are kept in files.
        products: Gives them.
    """

    identity: str
    large: bool
    products: Callable[[], Iterator[Product]] = field(compare=False)


def open_shop(catalogue: str | Path | None = None, num_products: int | None = None) -> Shop:
    """The shop with a catalogue.

    Args:
        catalogue: The file with products in the original's format, or its folder; None for
            the generated catalogue of this package.
        num_products: Only the first so many; None for all of a file, or 1,000 generated ones.

    Raises:
        DataNotFoundError: There is no such file.
        GameFileError: It is not in the format.
    """
    return _opened(_source(catalogue, num_products))


def open_nouns(tagger: str | NounTagger) -> Nouns:
    """What finds the nouns of titles; those by a tagger with a name are shared.

    Raises:
        ValueError: No tagger has this name.
        MissingDependencyError: It needs a package that is not installed.
    """
    return _nouns_by(tagger) if isinstance(tagger, str) else Nouns(tagger)


def cache_folder() -> Path:
    """Where large catalogues are kept."""
    given = os.environ.get("SANDBOXGYM_CACHE")
    if given:
        return Path(given) / "webshop"
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "sandboxgym" / "webshop"


@lru_cache(maxsize=4)
def _opened(source: Source) -> Shop:
    if not source.large:
        return Shop(ListedCatalogue(source.products()))
    name = hashlib.blake2b(f"{stored.FORMAT} {source.identity}".encode(), digest_size=16)
    folder = cache_folder() / name.hexdigest()
    if not folder.is_dir():
        stored.build(source.products(), folder)
    return stored.open_stored(folder)


@lru_cache(maxsize=4)
def _nouns_by(name: str) -> Nouns:
    return Nouns(tagger_named(name))


def _source(catalogue: str | Path | None, num_products: int | None) -> Source:
    if num_products is not None and num_products < 1:
        raise ValueError(f"num_products={num_products}: a shop sells something")
    if catalogue is None:
        number = synthetic.DEFAULT_NUMBER if num_products is None else num_products
        identity = ["generated", number, _beginning() if number > LARGE else None]
        return _named(identity, number > LARGE, partial(_generated, number))
    files = original.find_files(catalogue)
    size = files.products.stat().st_size
    large = size > _LARGE_FILE and (num_products is None or num_products > LARGE)
    read = partial(original.read_products, files, num_products)
    return _named([*files.identity, num_products], large, read)


@lru_cache(maxsize=1)
def _beginning() -> str:
    """Tells this generator from a later one, whose files would hold other products."""
    return digest_of(_generated(_ENOUGH_TO_TELL))


def _named(identity: list[Any], large: bool, products: Callable[[], Iterator[Product]]) -> Source:
    return Source(json.dumps(identity), large, products)


def _generated(number: int) -> Iterator[Product]:
    for listing in synthetic.listings(number):
        yield original.product_of(listing.product, listing.instruction, listing.human)
