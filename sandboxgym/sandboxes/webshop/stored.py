"""A shop in files: for catalogues that are too large to be read at every start.

The files are made once, from products that come one after another, and mapped into memory when
they are opened. So opening takes seconds, and what is not looked at takes no memory.
"""

from __future__ import annotations

import hashlib
import logging
import mmap
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.webshop.catalogue import Catalogue, GoalKind, Product
from sandboxgym.sandboxes.webshop.goals import DEFAULT_SEED, shuffled
from sandboxgym.sandboxes.webshop.index import IndexBuilder, mapped, open_index
from sandboxgym.sandboxes.webshop.shop import Shop

FORMAT = 2  # of the files; part of the name of the folder, so that others are made anew
_PRODUCTS = "products.msgpack"
_DIGEST = "digest.txt"
_logger = logging.getLogger(__name__)


class StoredCatalogue(Catalogue):
    """A catalogue in a folder that `build` made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.digest = (folder / _DIGEST).read_text("ascii")
        with (folder / _PRODUCTS).open("rb") as file:
            self._records = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._starts = mapped(folder / "starts_of_products.npy")
        self._asins = mapped(folder / "asins.npy")  # sorted
        self._positions = mapped(folder / "positions.npy")  # of these
        self._decoder = msgspec.msgpack.Decoder(Product)

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, position: int) -> Product:
        start, end = self._starts[position], self._starts[position + 1]
        return self._decoder.decode(self._records[start:end])

    def find(self, asin: str) -> int | None:
        """The position of a product, or None where there is none of that name."""
        name = np.bytes_(asin.encode())
        place = int(np.searchsorted(self._asins, name))
        if place < len(self) and self._asins[place] == name:
            return int(self._positions[place])
        return None

    def goal_counts(self, kind: GoalKind) -> NDArray[np.int64]:
        """How many goals are made of each product."""
        return mapped(self.folder / f"{kind}_goals.npy")


def open_stored(folder: Path) -> Shop:
    """The shop that `build` put into a folder."""
    orders = {
        (kind, DEFAULT_SEED): mapped(folder / f"{kind}_order.npy") for kind in get_args(GoalKind)
    }
    return Shop(StoredCatalogue(folder), open_index(folder / "index"), orders)


def build(products: Iterable[Product], folder: Path) -> None:
    """Make a shop of products, in a folder that appears when all is there.

    Two processes may do so at once; the first to be ready wins.

    Raises:
        GameFileError: There are no products.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _write(products, unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write(products: Iterable[Product], folder: Path) -> None:
    encoder = msgspec.msgpack.Encoder()
    check = hashlib.blake2b(digest_size=16)
    builder = IndexBuilder()
    asins: list[str] = []
    starts = [0]
    goals: dict[GoalKind, list[int]] = {kind: [] for kind in get_args(GoalKind)}
    with (folder / _PRODUCTS).open("wb") as file:
        for product in products:
            record = encoder.encode(product)
            file.write(record)
            check.update(record)
            starts.append(starts[-1] + len(record))
            asins.append(product.asin)
            builder.add(product.indexed_text)
            for kind, counts in goals.items():
                counts.append(product.number_of_goals(kind))
            if len(asins) % 100_000 == 0:
                _logger.info("%d products are read into %s", len(asins), folder)
    if not asins:
        raise GameFileError("the catalogue holds no product at all")
    names = np.array([asin.encode() for asin in asins], "S")
    order = np.argsort(names)
    np.save(folder / "starts_of_products.npy", np.array(starts, np.int64))
    np.save(folder / "asins.npy", names[order])
    np.save(folder / "positions.npy", order.astype(np.int32))
    for kind, counts in goals.items():
        np.save(folder / f"{kind}_goals.npy", np.array(counts, np.int64))
        np.save(folder / f"{kind}_order.npy", shuffled(sum(counts), DEFAULT_SEED))
    (folder / "index").mkdir()
    builder.finish(asins, folder / "index")
    (folder / _DIGEST).write_text(check.hexdigest(), "ascii")
