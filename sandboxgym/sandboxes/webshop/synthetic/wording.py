"""What is written about a product: title, bullet points, description, and what people ask for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from sandboxgym.sandboxes.webshop.synthetic.dice import Dice
from sandboxgym.sandboxes.webshop.synthetic.families import Member
from sandboxgym.sandboxes.webshop.synthetic.vocabulary import Feature

_TITLES = (
    "{brand} {model} {style} {head}{with_}{for_}, {is_}",
    "{brand} {style} {head}, {is_}{with_} - {tail}",
    "{style} {head}{for_}{with_} by {brand}, {tail}",
    "{is_} {style} {head}{with_}{for_} | {brand} {model}",
    "{brand} {head} - {style}, {is_}{for_} ({model})",
    "{brand} {model} {head}{with_}: {style}, {tail}",
)
_WITHOUT_IS = (
    "{brand} {model} {style} {head}{with_}{for_}",
    "{style} {head}{with_}{for_} by {brand}, {tail}",
    "{brand} {style} {head}{with_}{for_} ({model})",
)
_BULLETS = ("{upper}: {sentence}", "{phrase} - {sentence}", "[{phrase}] {sentence}")
_CHOICES = {
    "color": "in {value}",
    "size": "size {value}",
    "flavor name": "{value} flavor",
    "item package quantity": "{value}",
}
_ACRONYMS = {"Bpa": "BPA", "Gmo": "GMO", "Usb": "USB"}
_OPENINGS = (
    "i need", "i'm looking for", "i want to buy", "please find me", "can you help me find",
    "looking for", "my sister asked me for", "i would like", "help me pick", "show me",
)  # fmt: skip


def title(dice: Dice, product: Member) -> str:
    """The product's name, which tells some of its features."""
    told = dice.some(product.features, dice.between(1, 2))
    family = product.family
    is_, with_, for_ = _by_role(told)
    pattern = dice.choice(_TITLES if is_ else _WITHOUT_IS)
    return pattern.format(
        brand=family.brand,
        model=family.model,
        style=family.style,
        head=family.head,
        is_=", ".join(capitals(f.phrase) for f in is_),
        with_=" with " + " and ".join(capitals(f.phrase) for f in with_) if with_ else "",
        for_=" for " + " and ".join(capitals(f.phrase) for f in for_) if for_ else "",
        tail=dice.choice(family.kind.department.tails),
    )


def bullets(dice: Dice, product: Member) -> list[str]:
    """One point for each feature, and an aside among them."""
    points = []
    for feature in product.features:
        points.append(
            dice.choice(_BULLETS).format(
                upper=feature.phrase.upper(),
                phrase=capitals(feature.phrase),
                sentence=feature.sentence,
            )
        )
    points.insert(dice.between(0, len(points)), dice.choice(product.family.kind.department.asides))
    return points


def description(dice: Dice, product: Member) -> str:
    """Two stories about the family, and sometimes what the product is."""
    family = product.family
    stories = [
        story.format(brand=family.brand, model=family.model)
        for story in dice.some(family.kind.department.stories, 2)
    ]
    if dice.chance(0.4):
        said = _listed([feature.phrase for feature in product.features[:2]])
        stories.insert(1, f"What people like about the {family.model}: {said}.")
    return " ".join(stories)


def request(query: str, wanted: Sequence[Feature]) -> str:
    """An instruction in the words of WebShop's generated ones."""
    is_, with_, for_ = _by_role(wanted)
    text = "Find me "
    if is_:
        text += ", ".join(f.attribute for f in is_) + " "
    text += query
    if with_:
        text += " with " + ", ".join(f.attribute for f in with_)
    if for_:
        text += " for " + ", ".join(f.attribute for f in for_)
    return text


def wish(dice: Dice, head: str, wanted: Sequence[Feature], options: dict[str, str]) -> str:
    """An instruction as a person would write it."""
    is_, with_, for_ = _by_role(wanted)
    thing = " ".join([", ".join(f.phrase for f in is_), head.lower()]).strip()
    text = f"{dice.choice(_OPENINGS)} {_article(thing)}{thing}"
    if with_:
        text += " with " + _listed([f.phrase for f in with_])
    if for_:
        text += " for " + _listed([f.phrase for f in for_])
    if options:
        chosen = _listed([_choice(name.lower(), value) for name, value in options.items()])
        text += dice.choice((f", {chosen}", f". make it {chosen}", f" - {chosen} please"))
    return text + "."


@lru_cache(maxsize=1024)
def capitals(phrase: str) -> str:
    """A phrase as titles have it."""
    words = [_ACRONYMS.get(word, word) for word in phrase.title().split()]
    return " ".join(words).replace(" To ", " to ").replace(" And ", " and ")


def _by_role(features: Sequence[Feature]) -> tuple[list[Feature], list[Feature], list[Feature]]:
    is_, with_, for_ = ([f for f in features if f.role == role] for role in ("is", "with", "for"))
    return is_, with_, for_


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _choice(name: str, value: str) -> str:
    return _CHOICES.get(name, "{value} {name}").format(name=name, value=value)


def _article(thing: str) -> str:
    if thing.endswith("s"):
        return ""
    return "an " if thing[0] in "aeiou" else "a "
