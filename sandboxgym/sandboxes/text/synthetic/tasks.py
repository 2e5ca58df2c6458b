"""The six types of tasks of ALFWorld: how they are worded, what they ask for, where they happen."""

from __future__ import annotations

from dataclasses import dataclass

from sandboxgym.sandboxes.text.synthetic import rooms
from sandboxgym.sandboxes.text.synthetic.rooms import Room


@dataclass(frozen=True)
class TaskType:
    """One type of task.

    Attributes:
        name: Its name in ALFRED, which is also how the game's folder begins.
        wordings: Ways to say it; ``{obj}`` is the kind of object, ``{goal}`` that of the receptacle
            to bring it to, or the lamp to look at it with.
        goal: The same as a PDDL condition.
        count: How many objects of the kind have to be found.
        verb: What has to be done to the object on the way (``clean``, ``heat``, ``cool``).
        tool: The kind of receptacle that does it.
        targets: The kinds of objects it works for; ``None`` means any.
        needs_lamp: Whether the goal is a lamp in place of a receptacle.
    """

    name: str
    wordings: tuple[str, str]
    goal: str
    count: int = 1
    verb: str | None = None
    tool: str | None = None
    targets: frozenset[str] | None = None
    needs_lamp: bool = False

    def possible_in(self, room: Room) -> bool:
        """Whether every scene of the room has the lamp or the tool that the task needs."""
        if self.needs_lamp:
            return room.has_lamp
        return self.tool is None or self.tool in room.always

    def works_for(self, kind: str) -> bool:
        """Whether an object of this kind can be the target."""
        return self.targets is None or kind in self.targets


def _place(condition: str = "") -> str:
    return f"""
(exists (?o - object ?r - receptacle)
  (and
    (objectType ?o {{obj}}Type) (receptacleType ?r {{goal}}Type)
    (inReceptacle ?o ?r){condition}))"""


PICK_AND_PLACE = TaskType(
    name="pick_and_place_simple",
    wordings=("put a {obj} in {goal}", "put some {obj} on {goal}"),
    goal=_place(),
)

LOOK_IN_LIGHT = TaskType(
    name="look_at_obj_in_light",
    wordings=("look at {obj} under the {goal}", "examine the {obj} with the {goal}"),
    goal="""
(exists (?a - agent ?o - object ?lamp - object ?r - receptacle ?l - location)
  (and
    (objectType ?o {obj}Type) (holds ?a ?o)
    (objectType ?lamp {goal}Type) (isToggled ?lamp)
    (inReceptacle ?lamp ?r) (receptacleAtLocation ?r ?l) (atLocation ?a ?l)))""",
    needs_lamp=True,
)

CLEAN_AND_PLACE = TaskType(
    name="pick_clean_then_place_in_recep",
    wordings=("put a clean {obj} in {goal}", "clean some {obj} and put it in {goal}"),
    goal=_place(" (isClean ?o)"),
    verb="clean",
    tool=rooms.CLEANS,
    targets=frozenset(rooms.CLEANABLE),
)

HEAT_AND_PLACE = TaskType(
    name="pick_heat_then_place_in_recep",
    wordings=("put a hot {obj} in {goal}", "heat some {obj} and put it in {goal}"),
    goal=_place(" (isHot ?o)"),
    verb="heat",
    tool=rooms.HEATS,
    targets=frozenset(rooms.HEATABLE),
)

COOL_AND_PLACE = TaskType(
    name="pick_cool_then_place_in_recep",
    wordings=("put a cool {obj} in {goal}", "cool some {obj} and put it in {goal}"),
    goal=_place(" (isCool ?o)"),
    verb="cool",
    tool=rooms.COOLS,
    targets=frozenset(rooms.COOLABLE),
)

PICK_TWO_AND_PLACE = TaskType(
    name="pick_two_obj_and_place",
    wordings=("put two {obj} in {goal}", "find two {obj} and put them in {goal}"),
    goal="""
(exists (?o1 - object ?o2 - object ?r - receptacle)
  (and
    (objectType ?o1 {obj}Type) (objectType ?o2 {obj}Type) (not (= ?o1 ?o2))
    (receptacleType ?r {goal}Type) (inReceptacle ?o1 ?r) (inReceptacle ?o2 ?r)))""",
    count=2,
)

TASK_TYPES = {
    task.name: task
    for task in (
        PICK_AND_PLACE,
        LOOK_IN_LIGHT,
        CLEAN_AND_PLACE,
        HEAT_AND_PLACE,
        COOL_AND_PLACE,
        PICK_TWO_AND_PLACE,
    )
}


def task_type_named(name: str) -> TaskType:
    """The type of task of this name."""
    if name not in TASK_TYPES:
        raise ValueError(f"no task type {name!r}: choose among {', '.join(TASK_TYPES)}")
    return TASK_TYPES[name]
