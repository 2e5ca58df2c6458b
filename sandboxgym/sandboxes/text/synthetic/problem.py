"""Writes a house and an assignment as the texts of a ``game.tw-pddl`` file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from textwrap import indent

from sandboxgym.sandboxes.text.synthetic import rooms
from sandboxgym.sandboxes.text.synthetic.assignment import Assignment
from sandboxgym.sandboxes.text.synthetic.house import House, Thing

_OBJECT_ABILITIES = {
    "isReceptacleObject": rooms.HOLDS_OTHERS,
    "sliceable": rooms.SLICEABLE,
    "sharp": rooms.SHARP,
    "cleanable": rooms.CLEANABLE,
    "heatable": rooms.HEATABLE,
    "coolable": rooms.COOLABLE,
    "toggleable": {rooms.LAMP},
}
_RECEPTACLE_ABILITIES = {
    "openable": rooms.OPENABLE,
    "cleans": {rooms.CLEANS},
    "heats": {rooms.HEATS},
    "cools": {rooms.COOLS},
}


@lru_cache(maxsize=1)
def domain() -> str:
    """The PDDL domain, the same for every game."""
    return _package_text("domain.pddl")


def grammar(assignment: Assignment) -> str:
    """The text grammar, with the assignment in its introduction."""
    return _grammar_template().replace("@task@", assignment.text)


@lru_cache(maxsize=1)
def _grammar_template() -> str:
    return _package_text("grammar.twl2")


def _package_text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def problem(house: House, assignment: Assignment) -> str:
    """The PDDL problem: the things of the house, how it begins, and when the game is won."""
    return "\n".join(
        (
            "(define (problem house)",
            "  (:domain household)",
            "  (:objects",
            indent("\n".join(_objects(house)), " " * 4) + ")",
            "  (:init",
            indent("\n".join(_initial_facts(house)), " " * 4) + ")",
            "  (:goal",
            indent(_goal(assignment), " " * 4) + "))",
            "",
        )
    )


def _objects(house: House) -> Iterator[str]:
    yield "agent1 - agent"
    yield "middle " + " ".join(_location(place) for place in house.receptacles) + " - location"
    yield " ".join(place.id for place in house.receptacles) + " - receptacle"
    yield " ".join(thing.id for thing in house.contents) + " - object"
    yield " ".join(f"{kind}Type" for kind in _kinds(house.receptacles)) + " - rtype"
    yield " ".join(f"{kind}Type" for kind in _kinds(house.contents)) + " - otype"


def _initial_facts(house: House) -> Iterator[str]:
    yield "(atLocation agent1 middle)"
    for place in house.receptacles:
        yield f"(receptacleAtLocation {place.id} {_location(place)})"
        yield f"(receptacleType {place.id} {place.kind}Type)"
        yield from _abilities(place, _RECEPTACLE_ABILITIES)
    for thing, place in house.contents.items():
        yield f"(inReceptacle {thing.id} {place.id})"
        yield f"(objectType {thing.id} {thing.kind}Type)"
        if thing.kind != rooms.LAMP:
            yield f"(pickupable {thing.id})"
        yield from _abilities(thing, _OBJECT_ABILITIES)
    for receptacle in _kinds(house.receptacles):
        for kind in _kinds(house.contents):
            if kind in rooms.CONTAINS[receptacle]:
                yield f"(canContain {receptacle}Type {kind}Type)"


def _abilities(thing: Thing, abilities: dict[str, set[str]]) -> Iterator[str]:
    for ability, kinds in abilities.items():
        if thing.kind in kinds:
            yield f"({ability} {thing.id})"


def _goal(assignment: Assignment) -> str:
    goal = assignment.type.goal.format(
        obj=assignment.targets[0].kind, goal=assignment.goal.kind
    ).strip()
    if assignment.errand is None:
        return goal
    done = "\n".join(
        f"(exists (?r - receptacle) (and (receptacleType ?r {assignment.errand.goal.kind}Type) "
        f"(inReceptacle {thing.id} ?r)))"
        for thing in assignment.errand.things
    )
    return f"(and\n{indent(f'{goal}{chr(10)}{done}', '  ')})"


def _location(place: Thing) -> str:
    return f"by_{place.id}"


def _kinds(things: tuple[Thing, ...] | dict[Thing, Thing]) -> list[str]:
    return sorted({thing.kind for thing in things})
