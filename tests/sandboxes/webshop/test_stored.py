"""Large catalogues in files; here they are small."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.webshop import index, opening, stored
from sandboxgym.sandboxes.webshop.catalogue import ListedCatalogue
from sandboxgym.sandboxes.webshop.opening import open_shop
from sandboxgym.sandboxes.webshop.shop import Shop
from sandboxgym.sandboxes.webshop.stored import build, open_stored
from tests.sandboxes.webshop.small_shop import BOOTS, CATALOGUE, LAMP, LOAFERS
from tests.sandboxes.webshop.test_original import entry, write

PRODUCTS = [LOAFERS, BOOTS, LAMP, dataclasses.replace(LOAFERS, asin="A")]


@pytest.fixture(scope="module")
def shops(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored") / "shop"
    build(iter(PRODUCTS), folder)
    return open_stored(folder), Shop(ListedCatalogue(PRODUCTS))


def test_it_holds_the_same_products(shops):
    there, here = shops
    assert list(there.catalogue) == list(here.catalogue) == PRODUCTS
    assert there.catalogue.digest == here.catalogue.digest
    for asin in ("LOAFERS", "A", "LAMP", "B", "", "Z", "\u00e9", "LOAFERSS"):
        assert there.catalogue.find(asin) == here.catalogue.find(asin)
    with pytest.raises(KeyError):
        there.catalogue.product("NOWHERE")


def test_searches_find_the_same(shops):
    there, here = shops
    for words in ("red leather", "boots", "lamp lamp shade", "hand", "nothing"):
        assert there.found(words) == here.found(words)


@pytest.mark.parametrize("kind", ["synthetic", "human"])
@pytest.mark.parametrize("seed", [233, 5])
def test_goals_are_the_same(shops, kind, seed):
    there, here = shops
    assert list(there.goals(kind, seed)) == list(here.goals(kind, seed))


def test_a_large_catalogue_is_made_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SANDBOXGYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(opening, "_LARGE_FILE", 1)
    folder = tmp_path / "files"
    folder.mkdir()
    write(folder, [entry("B1"), entry("B2")])
    opening._opened.cache_clear()
    shop = open_shop(folder)
    assert isinstance(shop.catalogue, stored.StoredCatalogue)
    assert [p.asin for p in shop.catalogue] == ["B1", "B2"]
    monkeypatch.setattr(stored, "build", None)
    opening._opened.cache_clear()
    assert open_shop(folder).catalogue.digest == shop.catalogue.digest
    opening._opened.cache_clear()


def test_another_file_is_another_catalogue(tmp_path, monkeypatch):
    monkeypatch.setenv("SANDBOXGYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(opening, "_LARGE_FILE", 1)
    write(tmp_path, [entry("B1")])
    first = open_shop(tmp_path)
    write(tmp_path, [entry("B1"), entry("B2")])
    assert len(open_shop(tmp_path).catalogue) == 2
    assert len(first.catalogue) == 1
    opening._opened.cache_clear()


def test_of_two_that_make_it_the_first_wins(tmp_path):
    folder = tmp_path / "shop"
    build(iter(PRODUCTS), folder)
    build(iter(PRODUCTS[:1]), folder)
    assert len(open_stored(folder).catalogue) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]


def test_a_failure_leaves_nothing_behind(tmp_path):
    def products():
        yield LOAFERS
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="disk"):
        build(products(), tmp_path / "shop")
    assert list(tmp_path.iterdir()) == []


def test_a_shop_of_nothing_is_refused(tmp_path):
    with pytest.raises(GameFileError, match="no product"):
        build(iter([]), tmp_path / "shop")


def test_its_arrays_are_mapped_and_not_read(shops):
    there, _ = shops
    products = there._search._index.products
    assert isinstance(products.base, np.memmap)
    assert not products.flags.writeable
    assert isinstance(there.catalogue, stored.StoredCatalogue)
    assert CATALOGUE.digest != there.catalogue.digest
    assert index.open_index(there.catalogue.folder / "index").texts == 4
