"""The catalogue that ships with the package."""

import hashlib
import json
import subprocess
import sys
from itertools import islice

import pytest

from sandboxgym.sandboxes.webshop.synthetic import families, listings, write
from sandboxgym.sandboxes.webshop.synthetic.dice import Dice
from sandboxgym.sandboxes.webshop.synthetic.vocabulary import vocabulary

# Of the first 1,000 listings. It changes with every change to words or generator, and with it all
# recorded episodes; so change it knowingly.
DIGEST = "79c3c757882f3a53"


def digest(number=1000, seed=0):
    check = hashlib.sha256()
    for listing in listings(number, seed):
        check.update(json.dumps([listing.product, listing.instruction, listing.human]).encode())
    return check.hexdigest()[:16]


@pytest.fixture(scope="module")
def catalogue():
    return list(listings())


def test_the_catalogue_is_the_one_that_was_published():
    assert digest() == DIGEST


def test_another_process_with_other_hashes_makes_the_same():
    code = f"from {__name__} import digest; print(digest())"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "77", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == DIGEST


def test_a_small_catalogue_is_the_beginning_of_a_large_one(catalogue):
    assert list(listings(150)) == catalogue[:150]


def test_another_seed_is_another_catalogue():
    assert digest(50, seed=1) != digest(50, seed=0)


def test_products_are_made_one_at_a_time():
    assert next(islice(listings(10**12), 3, None)) == list(listings(4))[3]


def test_products_have_the_fields_of_the_original(catalogue):
    for listing in catalogue:
        product = listing.product
        assert len(product["asin"]) == 10
        assert product["name"].strip() == product["name"] != ""
        assert len(product["product_category"].split(" \u203a ")) >= 2
        assert all(point.strip() for point in product["small_description"])
        assert "{" not in json.dumps([product["name"], product["full_description"]])
        assert product["customization_options"] == "" or all(
            value["value"]
            for values in product["customization_options"].values()
            for value in values
        )


def test_no_two_products_have_the_same_asin():
    asins = [listing.asin for listing in listings(5000)]
    assert len(set(asins)) == len(asins)


def test_prices_are_single_or_a_range_or_empty(catalogue):
    kinds = [listing.product["pricing"].count("$") for listing in catalogue]
    assert {kind: kinds.count(kind) > 15 for kind in (0, 1, 2)} == {0: True, 1: True, 2: True}


def test_what_an_instruction_asks_for_is_true_of_the_product_and_said_on_its_page(catalogue):
    asked = [listing for listing in catalogue if "instruction" in listing.instruction]
    assert 500 < len(asked) < 700
    for listing in asked:
        wanted = listing.instruction["instruction_attributes"]
        assert wanted
        assert set(wanted) <= set(listing.instruction["attributes"])
        assert listing.product["query"] in listing.instruction["instruction"]
        page = " ".join(listing.product["small_description"]).lower()
        for attribute in wanted:
            assert attribute in listing.instruction["instruction"]
            assert all(word in page for word in attribute.split())


def test_a_persons_wish_names_options_that_the_product_has(catalogue):
    wishes = [(listing, wish) for listing in catalogue for wish in listing.human]
    assert len(wishes) > 500
    for listing, wish in wishes:
        options = listing.product["customization_options"] or {}
        offered = {value["value"] for values in options.values() for value in values}
        assert set(wish["instruction_options"]) <= offered
        assert all(value in wish["instruction"] for value in wish["instruction_options"])
        assert len(wish["instruction_options"]) == len(options)


def test_siblings_share_their_brand_and_differ_in_features_or_options():
    for number in range(20):
        dice = Dice("family", number)
        family = families.family(dice, vocabulary())
        siblings = [families.member(dice, family) for _ in range(6)]
        assert all(set(family.features) < set(sibling.features) for sibling in siblings)
        facts = [
            (frozenset(f.phrase for f in sibling.features), str(sibling.options))
            for sibling in siblings
        ]
        assert len(set(facts)) >= 4


def test_every_kind_of_product_is_written_completely():
    kinds = vocabulary().kinds
    assert len(kinds) >= 70
    assert len({kind.query for kind in kinds}) == len(kinds)
    for kind in kinds:
        names = [axis.name for axis in kind.axes]
        assert len(set(names)) == len(names), f"{kind.query} has two options of one name"
        assert len(set(kind.features)) == len(kind.features) >= 6
        assert len(kind.heads) >= 4
        assert len(kind.styles) >= 4
        assert 0 < kind.cheapest < kind.dearest


def test_the_three_files_hold_the_same_products(tmp_path):
    files = write(tmp_path, 40)
    products, attributes, human = (json.loads(file.read_text()) for file in files)
    assert [file.name for file in files] == [
        "items_shuffle.json",
        "items_ins_v2.json",
        "items_human_ins.json",
    ]
    made = list(listings(40))
    assert products == [listing.product for listing in made]
    assert list(attributes) == [product["asin"] for product in products]
    assert set(human) < set(attributes)


def test_dice_choose_what_was_asked_for():
    dice = Dice("test", 1)
    items = list(range(10))
    assert all(3 <= dice.between(3, 5) <= 5 for _ in range(50))
    assert sorted(dice.some(items, 99)) == items
    assert dice.selection(items, 99) == items
    picked = dice.selection(items, 4)
    assert len(picked) == 4
    assert picked == sorted(picked)
    run = dice.run(items, 3)
    assert run == list(range(run[0], run[0] + 3))
    assert dice.run(items, 99) == items
