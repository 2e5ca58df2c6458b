"""A plain way to solve a game, as the commands of an agent that knows where everything is."""

from __future__ import annotations

from sandboxgym.sandboxes.text.synthetic.assignment import Assignment
from sandboxgym.sandboxes.text.synthetic.house import House, Thing
from sandboxgym.sandboxes.text.synthetic.rooms import OPENABLE


def walkthrough(assignment: Assignment, house: House) -> tuple[str, ...]:
    """The commands that carry out an assignment, errands first; the last one wins."""
    walk = _Walk(house)
    if assignment.errand is not None:
        for thing in reversed(assignment.errand.things):  # the order in which they are listed
            walk.take(thing)
            walk.put(thing, assignment.errand.goal)
    for thing in assignment.targets:
        walk.take(thing)
        if assignment.tool is not None:
            walk.treat(thing, str(assignment.type.verb), assignment.tool)
        if assignment.type.needs_lamp:
            walk.use(assignment.goal)
        else:
            walk.put(thing, assignment.goal)
    return tuple(walk.commands)


class _Walk:
    """Commands so far, and as much of the state as it takes to leave out needless ones."""

    def __init__(self, house: House) -> None:
        self.commands: list[str] = []
        self._contents = house.contents
        self._here: Thing | None = None
        self._opened: set[Thing] = set()

    def take(self, thing: Thing) -> None:
        place = self._contents[thing]
        self._reach_into(place)
        self.commands.append(f"take {thing.name} from {place.name}")

    def put(self, thing: Thing, place: Thing) -> None:
        self._reach_into(place)
        self.commands.append(f"move {thing.name} to {place.name}")

    def treat(self, thing: Thing, verb: str, tool: Thing) -> None:
        self._go_to(tool)
        self.commands.append(f"{verb} {thing.name} with {tool.name}")

    def use(self, lamp: Thing) -> None:
        self._go_to(self._contents[lamp])
        self.commands.append(f"use {lamp.name}")

    def _go_to(self, place: Thing) -> None:
        if place != self._here:
            self.commands.append(f"go to {place.name}")
            self._here = place

    def _reach_into(self, place: Thing) -> None:
        self._go_to(place)
        if place.kind in OPENABLE and place not in self._opened:
            self.commands.append(f"open {place.name}")
            self._opened.add(place)
