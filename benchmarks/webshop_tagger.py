"""How far the built-in tagger of nouns is from spaCy, and what that does to rewards.

    python -m benchmarks.webshop_tagger --items FOLDER --out webshop_tagger.json
        [--nouns title_nouns.json.gz] [--episodes episodes.jsonl.gz]

`FOLDER` holds WebShop's `items_shuffle*.json`. The nouns that spaCy found are read from a file,
asin to list, or found now (needs spaCy). Said are: the overlap of nouns (Jaccard, mean over
titles); in how many pairs of two products with the same query the one would earn another `r_type`
where the other was asked for; the same for pairs at random, and for recorded purchases.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.webshop.catalogue import Product
from sandboxgym.sandboxes.webshop.goals import Goal
from sandboxgym.sandboxes.webshop.nouns import GivenNouns, Nouns
from sandboxgym.sandboxes.webshop.original import find_files, read_products
from sandboxgym.sandboxes.webshop.reward import reward
from sandboxgym.sandboxes.webshop.tagger import BuiltinTagger, SpacyTagger

RANDOM_PAIRS = 20_000

Pairs = Sequence[tuple[str, str]]  # asin asked for, asin bought
Tagged = Mapping[str, Sequence[str]]  # nouns by asin


def main() -> None:
    arguments = parsed_arguments()
    products = {product.asin: product for product in read_products(find_files(arguments.items))}
    if arguments.nouns:
        reference, given = arguments.nouns.name, read_json(arguments.nouns)
    else:
        spacy = SpacyTagger()
        reference, given = spacy.id, tag(spacy, products.values())
    builtin = BuiltinTagger()
    builtin.nouns("")  # reads its rules
    start = time.perf_counter()
    found = tag(builtin, products.values())
    taken = time.perf_counter() - start
    result = {
        "tagger": builtin.id,
        "reference": reference,
        "titles": len(products),
        "us_per_title": round(1e6 * taken / len(products), 1),
        **distance(products, given, found, purchases(arguments.episodes, products)),
    }
    arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How far the built-in tagger is from spaCy.")
    parser.add_argument("--items", type=Path, required=True, help="folder with WebShop's files")
    parser.add_argument("--nouns", type=Path, help="what spaCy found, by asin")
    parser.add_argument("--episodes", type=Path, help="recorded episodes")
    parser.add_argument("--out", type=Path, default=Path("webshop_tagger.json"))
    return parser.parse_args()


def read_json(file: Path) -> Any:
    data = file.read_bytes()
    return json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)


def tag(tagger: BuiltinTagger | SpacyTagger, products: Iterable[Product]) -> Tagged:
    return {product.asin: tagger.nouns(product.title) for product in products}


def distance(
    products: Mapping[str, Product], given: Tagged, found: Tagged, bought: Pairs = ()
) -> dict[str, Any]:
    """How far one tagger is from another."""
    overlaps = [jaccard(given[asin], found[asin]) for asin in products]
    return {
        "jaccard": round(sum(overlaps) / len(overlaps), 4),
        "same_query": changed(products, given, found, same_query(products)),
        "random": changed(products, given, found, random_pairs(products)),
        "purchases": changed(products, given, found, bought),
    }


def jaccard(these: Sequence[str], those: Sequence[str]) -> float:
    union = {*these, *those}
    return len({*these} & {*those}) / len(union) if union else 1.0


def changed(
    products: Mapping[str, Product], given: Tagged, found: Tagged, pairs: Pairs
) -> dict[str, Any]:
    """In how many pairs the type of the product counts differently."""
    types = [
        [r_type(products[wanted], products[bought], nouns) for wanted, bought in pairs]
        for nouns in (by_title(products, given), by_title(products, found))
    ]
    number = sum(a != b for a, b in zip(*types, strict=True))
    return {
        "pairs": len(pairs),
        "changed": number,
        "percent": round(100 * number / len(pairs), 2) if pairs else None,
    }


def by_title(products: Mapping[str, Product], tagged: Tagged) -> Nouns:
    return Nouns(GivenNouns("given", {products[a].title: nouns for a, nouns in tagged.items()}))


def r_type(wanted: Product, bought: Product, nouns: Nouns) -> float:
    goal = Goal(
        asin=wanted.asin,
        title=wanted.title,
        query=wanted.query,
        category=wanted.category,
        instruction="",
        attributes=("",),
        options={},
        price_limit=0.0,
    )
    return reward(bought, goal, 0.0, {}, nouns).r_type


def same_query(products: Mapping[str, Product]) -> Pairs:
    shelves: dict[str, list[str]] = defaultdict(list)
    for product in products.values():
        shelves[product.query].append(product.asin)
    return [(a, b) for shelf in shelves.values() for a in shelf for b in shelf if a != b]


def random_pairs(products: Mapping[str, Product]) -> Pairs:
    rng, asins = random.Random(0), list(products)
    return [(rng.choice(asins), rng.choice(asins)) for _ in range(RANDOM_PAIRS)]


def purchases(file: Path | None, products: Mapping[str, Product]) -> Pairs:
    """What recorded episodes ended with: the goal, and the product last looked at."""
    if file is None:
        return []
    found = []
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for episode in map(json.loads, lines):
            looked_at = [
                step["action"][len("click[") : -1].upper()
                for step in episode["steps"]
                if step["action"].startswith("click[")
            ]
            seen = [asin for asin in looked_at if asin in products]
            if episode["steps"][-1]["done"] and seen and episode["goal"]["asin"] in products:
                found.append((episode["goal"]["asin"], seen[-1]))
    return found


if __name__ == "__main__":
    main()
