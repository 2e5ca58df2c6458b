"""Draws a house with an assignment in it, such that the assignment can be carried out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sandboxgym.sandboxes.text.synthetic.assignment import Assignment, Errand
from sandboxgym.sandboxes.text.synthetic.dice import Dice
from sandboxgym.sandboxes.text.synthetic.difficulty import Difficulty
from sandboxgym.sandboxes.text.synthetic.house import House, Thing, number_things
from sandboxgym.sandboxes.text.synthetic.rooms import CONTAINS, LAMP, OPENABLE, Room
from sandboxgym.sandboxes.text.synthetic.scenes import is_held_out
from sandboxgym.sandboxes.text.synthetic.tasks import TaskType

_MOST_OF_A_KIND = 3


def furnish(
    task: TaskType,
    room: Room,
    plan: tuple[str, ...],
    difficulty: Difficulty,
    dice: Dice,
    *,
    unseen: bool,
) -> tuple[House, Assignment] | None:
    """Fill a floor plan with objects and give an assignment; ``None`` if none is possible here.

    The order of the placements decides the numbers that the objects get, so targets and errands
    come first. Nothing is given away by it: the room has no other things of their kinds.
    """
    receptacles = number_things(plan)
    choice = _choose_target(task, room, receptacles, difficulty, dice, unseen=unseen)
    if choice is None:
        return None
    placements = [(choice.target, dice.choice(choice.sources)) for _ in range(task.count)]

    chore = None
    if difficulty.errands > 0:
        chore = _choose_chore(choice.target, room, receptacles, dice)
        if chore is None:
            return None
        placements += [(chore.kind, chore.source)] * difficulty.errands

    if room.has_lamp:
        placements.append((LAMP, dice.choice(_accepting(LAMP, receptacles))))
    placements += _distractors(difficulty.distractors, placements, room, receptacles, dice)

    objects = number_things(kind for kind, _ in placements)
    targets = tuple(objects[: task.count])
    errand = None
    if chore is not None:
        errand = Errand(tuple(objects[task.count :][: difficulty.errands]), chore.goal)
    goals = [thing for thing in (*receptacles, *objects) if thing.kind == choice.goal]
    assignment = Assignment(
        type=task,
        wording=dice.choice(task.wordings),
        targets=targets,
        goal=dice.choice(goals),
        tool=next((place for place in receptacles if place.kind == task.tool), None),
        errand=errand,
    )
    places = [place for _, place in placements]
    house = House(tuple(receptacles), dict(zip(objects, places, strict=True)))
    return house, assignment


@dataclass(frozen=True)
class _Choice:
    """A kind of object to find, the kind of receptacle or lamp to bring it to, where it may be."""

    target: str
    goal: str
    sources: tuple[Thing, ...]


def _choose_target(
    task: TaskType,
    room: Room,
    receptacles: list[Thing],
    difficulty: Difficulty,
    dice: Dice,
    *,
    unseen: bool,
) -> _Choice | None:
    """A pairing of this split; as near as the room allows to what the dice say about doors."""
    hidden = dice.chance(difficulty.hidden)
    closed_goal = dice.chance(difficulty.closed_goal)
    kinds = sorted({place.kind for place in receptacles} - {task.tool})
    by_misses: dict[int, list[_Choice]] = {}
    for target in filter(task.works_for, room.objects):
        places = _accepting(target, receptacles)
        goals = [LAMP] if task.needs_lamp else [kind for kind in kinds if target in CONTAINS[kind]]
        for goal in goals:
            sources = [place for place in places if place.kind != goal]
            if not sources or is_held_out((target, goal)) != unseen:
                continue
            fitting = [place for place in sources if (place.kind in OPENABLE) == hidden]
            misses = (not fitting) + ((goal in OPENABLE) != closed_goal)
            choice = _Choice(target, goal, tuple(fitting or sources))
            by_misses.setdefault(misses, []).append(choice)
    return dice.choice(by_misses[min(by_misses)]) if by_misses else None


@dataclass(frozen=True)
class _Chore:
    """A kind of object, where all of them are, and the receptacle to bring them to."""

    kind: str
    source: Thing
    goal: Thing


def _choose_chore(target: str, room: Room, receptacles: list[Thing], dice: Dice) -> _Chore | None:
    """Something that can be carried from one open receptacle to an open one of another kind."""
    choices = []
    for kind in room.objects:
        if kind == target:
            continue
        open_places = [p for p in _accepting(kind, receptacles) if p.kind not in OPENABLE]
        choices += [
            _Chore(kind, source, goal)
            for source in open_places
            for goal in open_places
            if goal.kind != source.kind
        ]
    return dice.choice(choices) if choices else None


def _distractors(
    count: int,
    placements: list[tuple[str, Thing]],
    room: Room,
    receptacles: list[Thing],
    dice: Dice,
) -> list[tuple[str, Thing]]:
    """Up to ``count`` further objects, none of a kind that is there already."""
    taken = {kind for kind, _ in placements}
    left = Counter(
        {
            kind: _MOST_OF_A_KIND
            for kind in room.objects
            if kind not in taken and _accepting(kind, receptacles)
        }
    )
    distractors: list[tuple[str, Thing]] = []
    while left and len(distractors) < count:
        kind = dice.choice(list(left))
        distractors.append((kind, dice.choice(_accepting(kind, receptacles))))
        left -= Counter([kind])  # drops a kind of which none is left
    return distractors


def _accepting(kind: str, receptacles: list[Thing]) -> list[Thing]:
    return [place for place in receptacles if kind in CONTAINS[place.kind]]
