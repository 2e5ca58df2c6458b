"""Derive the rules of the built-in tagger from what spaCy says about titles, and test them.

    python -m benchmarks.webshop_tagger_rules --items FOLDER --out tagger_rules.ini

`FOLDER` holds WebShop's `items_shuffle*.json` (or `.json.gz`). Needs spaCy and its small English
model. Labelled are the titles, and phrases from bullet points written like titles, which know more
words. A pattern becomes a rule where it was seen often enough and says something else than the more
general rules. Only patterns are written, no titles.

Printed is how far the rules are from spaCy on titles that they were not derived from: products are
divided into five parts, and each part is tagged with rules derived from the other four.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.webshop_tagger import distance, purchases
from sandboxgym.sandboxes.webshop import tagger
from sandboxgym.sandboxes.webshop.catalogue import Product
from sandboxgym.sandboxes.webshop.original import find_files, read_products

FOLDS = 5
PHRASES = 6  # from each product
PHRASE_WEIGHT = 0.3
CERTAINTY = 0.9  # that a token is a noun, before anything is known
# By level, as `tagger.patterns` has them: how many times its more general pattern counts against
# what was seen of a pattern, and in how many products that must have been.
PRIOR = (0.0, 8.0, 2.0, 2.0, 3.0, 6.0)
PRODUCTS = (20, 8, 3, 3, 3, 3)

Labelled = tuple[float, list[tuple[str, bool]]]  # weight, tokens and whether they are nouns


def main() -> None:
    arguments = parsed_arguments()
    products = {product.asin: product for product in read_products(find_files(arguments.items))}
    labelled = label(products.values())
    given = {asin: nouns_of(texts[0]) for asin, texts in labelled.items()}
    bought = purchases(arguments.episodes, products)
    print(json.dumps(distance(products, given, cross_validated(labelled), bought), indent=2))
    rules = derive(labelled)
    arguments.out.write_text(written(rules), encoding="utf-8")
    print(f"{len(rules)} rules in {arguments.out}")


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--items", type=Path, required=True, help="folder with WebShop's files")
    parser.add_argument("--episodes", type=Path, help="recorded episodes")
    parser.add_argument("--out", type=Path, default=Path("tagger_rules.ini"))
    return parser.parse_args()


def label(products: Iterable[Product]) -> dict[str, list[Labelled]]:
    """What spaCy says about each product's title, which comes first, and about its phrases."""
    rng = random.Random(1)
    texts = [(product.asin, text) for product in products for text in texts_of(product, rng)]
    parse, _ = tagger._spacy_model(None)
    labelled: dict[str, list[Labelled]] = defaultdict(list)
    for (asin, _text), parsed in zip(texts, parse.pipe([t for _, t in texts]), strict=True):
        tokens = [
            (token.text, token.pos_ in ("NOUN", "PROPN")) for token in parsed if not token.is_space
        ]
        labelled[asin].append((PHRASE_WEIGHT if asin in labelled else 1.0, tokens))
    return labelled


def texts_of(product: Product, rng: random.Random) -> list[str]:
    """The title, then the beginning of it or a part, followed by a phrase written like a title."""
    title = product.title
    parts = [part.strip() for part in re.split(r"[,|(]| - ", title) if part.strip()] or [title]
    sentences = [*product.features, product.description]
    phrases = [
        phrase.strip()
        for sentence in sentences
        for phrase in re.split(r"[.!?;:\u3010\u3011\[\]\n]", sentence)[:3]
        if 2 <= len(phrase.split()) <= 14
    ]
    chosen = rng.sample(phrases, min(PHRASES, len(phrases)))
    made = [
        rng.choice(parts) + rng.choice((", ", " - ", " ")) + like_a_title(phrase)
        for phrase in chosen
    ]
    return [title, ", ".join(rng.sample(parts, len(parts))), *made]


def nouns_of(labelled: Labelled) -> list[str]:
    return [word.lower() for word, is_noun in labelled[1] if is_noun]


def like_a_title(phrase: str) -> str:
    return " ".join(
        word if tagger.shape_of(word) == "of" else word[0].upper() + word[1:]
        for word in phrase.split()
    )


def derive(labelled: Mapping[str, list[Labelled]]) -> dict[str, bool]:
    """Rules that say what was counted, each only where it differs from the more general ones."""
    counts: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
    products: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for asin, texts in labelled.items():
        for weight, tokens in texts:
            words = [word for word, _ in tokens]
            for at, (_, is_noun) in enumerate(tokens):
                chain = tagger.patterns(words, at)
                for length in range(1, len(chain) + 1):
                    counts[chain[:length]][is_noun] += weight
                    products[chain[:length]].add(asin)
    rules: dict[str, bool] = {}
    certainty: dict[str, float] = {}
    for chain in sorted(counts, key=len):
        others, nouns = counts[chain]
        *general, pattern = chain
        level = len(general)
        before = certainty[general[-1]] if general else CERTAINTY
        certain = (nouns + PRIOR[level] * before) / (others + nouns + PRIOR[level])
        certainty[pattern] = certain
        answered = next((rules[p] for p in reversed(general) if p in rules), True)
        if len(products[chain]) >= PRODUCTS[level] and (certain > 0.5) != answered:
            rules[pattern] = certain > 0.5
    return rules


def cross_validated(labelled: dict[str, list[Labelled]]) -> dict[str, list[str]]:
    """The nouns of each title by rules that were derived without its product."""
    asins = list(labelled)
    random.Random(3).shuffle(asins)
    found = {}
    for fold in range(FOLDS):
        held_out = set(asins[fold::FOLDS])
        rules = derive({a: texts for a, texts in labelled.items() if a not in held_out})
        for asin in held_out:
            words = [word for word, _ in labelled[asin][0][1]]
            found[asin] = [
                word.lower() for at, word in enumerate(words) if tagger.is_noun(rules, words, at)
            ]
    return found


def written(rules: dict[str, bool]) -> str:
    """Rules as the tagger reads them."""
    sections: dict[str, list[str]] = defaultdict(list)
    for pattern, answer in rules.items():
        word, rest = pattern.split(" ", 1)
        sections[f"{'noun' if answer else 'other'} {rest}"].append(word)
    lines = ["# Made by benchmarks/webshop_tagger_rules.py. See parsed_rules in tagger.py.", ""]
    for name, words in sorted(sections.items()):
        text = textwrap.wrap(" ".join(sorted(words)), 92, break_long_words=False)
        lines += [f"[{name}]", "words =", *(f"    {line}" for line in text), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
