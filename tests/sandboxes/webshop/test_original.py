"""Reading files in the format of the original."""

from __future__ import annotations

import gzip
import json

import pytest

from sandboxgym.core.errors import DataNotFoundError, GameFileError
from sandboxgym.sandboxes.webshop import original
from sandboxgym.sandboxes.webshop.catalogue import Instruction, ListedCatalogue
from sandboxgym.sandboxes.webshop.original import find_files, read_products
from sandboxgym.sandboxes.webshop.prices import parse_prices


def entry(asin="B000000001", **other):
    return {
        "asin": asin,
        "name": "Shoes",
        "full_description": "Fine",
        "small_description": ["Soft", "Warm"],
        "category": "fashion",
        "query": " Men's Shoes ",
        "product_category": "Clothing \u203a Shoes",
        "pricing": "$9.99",
        "customization_options": {"Size": [{"value": " 8/9 Wide "}], "Color": None},
        "images": [],
    } | other


def write(folder, products, attributes=None, human=None, name="items_shuffle.json"):
    (folder / name).write_text(json.dumps(products))
    if attributes is not None:
        (folder / "items_ins_v2.json").write_text(json.dumps(attributes))
    if human is not None:
        (folder / "items_human_ins.json").write_text(json.dumps(human))
    return folder


def read(folder, number=None):
    return list(read_products(find_files(folder), number))


def test_a_product_has_what_the_three_files_say(tmp_path):
    wish = {"instruction": "warm shoes", "instruction_attributes": ["warm"],
            "instruction_options": ["8"]}  # fmt: skip
    attributes = {"attributes": ["warm"], "instruction": "Find me", "instruction_attributes": ["w"]}
    write(tmp_path, [entry()], {"B000000001": attributes}, {"B000000001": [wish]})
    [product] = read(tmp_path)
    assert product.query == "men's shoes"
    assert product.options == {"size": ("8 | 9 wide",)}
    assert product.features == ("Soft", "Warm")
    assert product.categories == ("Clothing", "Shoes")
    assert product.attributes == ("warm",)
    assert product.instruction == "Find me"
    assert product.instructions == (Instruction("warm shoes", ("warm",), ("8",)),)
    assert product.indexed_text == "shoes fine soft size: 8 | 9 wide"


def test_a_product_that_only_one_file_has(tmp_path):
    [product] = read(write(tmp_path, [entry(customization_options="", small_description="One")]))
    assert product.attributes == ("DUMMY_ATTR",)
    assert product.instruction is None
    assert product.options == {}
    assert product.features == ("One",)


def test_odd_and_repeated_asins_are_left_out(tmp_path):
    entries = [entry("nan"), entry("B0000000011"), entry("B1"), entry("B1", name="again")]
    assert [p.title for p in read(write(tmp_path, entries))] == ["Shoes"]


def test_only_the_first_entries(tmp_path):
    write(tmp_path, [entry("nan"), entry("B1"), entry("B2")])
    assert [p.asin for p in read(tmp_path, 2)] == ["B1"]


@pytest.mark.parametrize(
    ("text", "prices", "tag"),
    [
        (None, (100.0,), "$100.0"),
        ("", (100.0,), "$100.0"),
        ("$9.99", (9.99,), "$9.99"),
        ("$1,299", (1299.0,), "$1299.0"),
        ("$5.5 - $10", (5.5, 10.0), "$5.5 to $10.0"),
        ("from $1 to $2 or $3", (1.0, 2.0), "$1.0 to $2.0"),
    ],
)
def test_prices(tmp_path, text, prices, tag):
    [product] = read(write(tmp_path, [entry(pricing=text)]))
    assert (product.prices, product.price_tag) == (prices, tag)


@pytest.mark.parametrize("text", ["free", "$", "$1.2.3", "9.99"])
def test_what_is_no_price_is_refused(text):
    with pytest.raises(GameFileError, match="is no price"):
        parse_prices(text)


def test_files_are_found_by_folder_by_name_and_packed(tmp_path):
    write(tmp_path, [entry("B1")], {"B1": {"attributes": ["full"]}})
    write(tmp_path, [entry("B2")], name="items_shuffle_1000.json")
    (tmp_path / "items_ins_v2_1000.json.gz").write_bytes(
        gzip.compress(json.dumps({"B2": {"attributes": ["small"]}}).encode())
    )
    assert [p.attributes for p in read(tmp_path)] == [("full",)]
    assert [p.attributes for p in read(tmp_path / "items_shuffle_1000.json")] == [("small",)]


def test_what_is_not_there_is_named(tmp_path):
    for missing in (tmp_path / "no.json", tmp_path):
        with pytest.raises(DataNotFoundError, match="items_shuffle"):
            find_files(missing)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[",
        "[{]",
        "nothing",
        "[1]",
        json.dumps([{"asin": "B1"}]),
        json.dumps([entry(name=None)]),
        json.dumps([entry(small_description=[1])]),
        json.dumps([entry(customization_options={"size": [{}]})]),
        json.dumps([entry(pricing=7)]),
        json.dumps([entry(pricing="dear")]),
        json.dumps([entry(pricing="$" + "9" * 400)]),
        json.dumps([entry(name="half a character \ud83c")]),
        json.dumps([entry(customization_options={"size": [{"value": 8}]})]),
        "[" * 100_000,
        json.dumps([entry()])[:-1],
    ],
)
def test_broken_files_are_refused_by_name(tmp_path, content):
    (tmp_path / "items_shuffle.json").write_text(content)
    with pytest.raises(GameFileError, match=r"items_shuffle\.json"):
        read(tmp_path)


@pytest.mark.parametrize("content", ["[]", "{", "\x00", '{"a":' * 100_000])
def test_broken_attributes_are_refused_by_name(tmp_path, content):
    write(tmp_path, [entry()])
    (tmp_path / "items_ins_v2.json").write_text(content)
    with pytest.raises(GameFileError, match=r"items_ins_v2\.json"):
        read(tmp_path)


def test_a_file_is_read_piece_by_piece(tmp_path, monkeypatch):
    products = [entry(f"B{i}", name="\u2764" * i) for i in range(50)]
    write(tmp_path, products)
    whole = read(tmp_path)
    for size in (1, 7, 100, 1000):
        monkeypatch.setattr(original, "_CHUNK", size)
        assert read(tmp_path) == whole


def test_an_entry_beyond_all_measure_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(original, "_CHUNK", 100)
    monkeypatch.setattr(original, "MAX_PRODUCT", 1000)
    write(tmp_path, [entry(name="x" * 5000)])
    with pytest.raises(GameFileError, match="more than 1000 characters"):
        read(tmp_path)


def test_the_digest_tells_catalogues_apart(tmp_path):
    write(tmp_path, [entry("B1"), entry("B2")])
    both = read(tmp_path)
    assert ListedCatalogue(both).digest == ListedCatalogue(both).digest
    assert ListedCatalogue(both).digest != ListedCatalogue(both[::-1]).digest
