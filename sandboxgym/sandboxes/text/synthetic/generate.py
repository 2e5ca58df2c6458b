"""Generates games: each a pure function of its seed, its split and what is asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sandboxgym.core.errors import DataNotFoundError
from sandboxgym.sandboxes.text.synthetic import problem
from sandboxgym.sandboxes.text.synthetic.assignment import Assignment
from sandboxgym.sandboxes.text.synthetic.dice import Dice
from sandboxgym.sandboxes.text.synthetic.difficulty import Difficulty
from sandboxgym.sandboxes.text.synthetic.furnish import furnish
from sandboxgym.sandboxes.text.synthetic.house import House
from sandboxgym.sandboxes.text.synthetic.rooms import LAMP, ROOMS
from sandboxgym.sandboxes.text.synthetic.scenes import (
    SPLITS,
    UNSEEN_SPLIT,
    floor_plan,
    scenes_of,
)
from sandboxgym.sandboxes.text.synthetic.tasks import TASK_TYPES, TaskType, task_type_named
from sandboxgym.sandboxes.text.synthetic.walkthrough import walkthrough


@dataclass(frozen=True)
class GameFile:
    """A generated game.

    Attributes:
        task_type: Which of the six types of tasks it is.
        target: The kind of object to find, such as ``Mug``.
        goal: The kind of receptacle to bring it to, such as ``Shelf``, or the lamp.
        scene: The number of the floor plan, as in ALFRED.
        split: The split the game belongs to.
        seed: Its number within the split.
        pddl_domain: The rules of the world.
        grammar: The commands and sentences.
        pddl_problem: The room, and when the game is won.
        walkthrough: Commands that win it; the last one does.
    """

    task_type: str
    target: str
    goal: str
    scene: int
    split: str
    seed: int
    pddl_domain: str
    grammar: str
    pddl_problem: str
    walkthrough: tuple[str, ...]

    @property
    def name(self) -> str:
        """The game's folder, named as in the real data: task and scene, then a trial."""
        return (
            f"{self.task_type}-{self.target}-None-{self.goal}-{self.scene}/trial_S{self.seed:08d}"
        )

    def to_dict(self) -> dict[str, object]:
        """The content of ``game.tw-pddl``."""
        return {
            "pddl_domain": self.pddl_domain,
            "grammar": self.grammar,
            "pddl_problem": self.pddl_problem,
            "solvable": True,
            "walkthrough": list(self.walkthrough),
        }

    def to_json(self) -> str:
        """The text of ``game.tw-pddl``."""
        return json.dumps(self.to_dict())

    def trajectory(self) -> dict[str, object]:
        """The content of ``traj_data.json``, as far as ALFWorld's own loader and expert read it."""
        has_lamp = self.goal == LAMP
        return {
            "task_type": self.task_type,
            "pddl_params": {
                "mrecep_target": "",
                "object_sliced": False,
                "object_target": self.target,
                "parent_target": "" if has_lamp else self.goal,
                "toggle_target": self.goal if has_lamp else "",
            },
        }


def generate_game(
    seed: int,
    *,
    task_type: str | None = None,
    difficulty: Difficulty | str = "normal",
    split: str = "train",
) -> GameFile:
    """Generate the game with this seed.

    The same arguments give the same game in every process and Python version. Two splits share no
    game, whatever the seeds.

    Args:
        seed: Any integer from 0.
        task_type: One of :data:`TASK_TYPES`; left out, the seed decides.
        difficulty: A preset's name or the knobs themselves.
        split: ``train``, ``valid_seen`` (new games on the floor plans of train) or
            ``valid_unseen`` (floor plans and pairings of object and receptacle that the others
            never use).
    """
    if seed < 0:
        raise ValueError(f"seed={seed}: seeds begin at 0")
    if split not in SPLITS:
        raise DataNotFoundError(f"no split {split!r}: choose among {', '.join(SPLITS)}")
    difficulty = Difficulty.named(difficulty)
    task = task_type_named(task_type or Dice("task type", split, seed).choice(tuple(TASK_TYPES)))

    dice = Dice("game", split, seed, task.name)
    drawn = _furnish_some_scene(task, difficulty, dice, unseen=split == UNSEEN_SPLIT)
    if drawn is None:
        raise ValueError(
            f"no scene of {split} has room for the task {task.name} with {difficulty}; "
            "give receptacles a wider range"
        )
    scene, house, assignment = drawn
    return GameFile(
        task_type=task.name,
        target=assignment.targets[0].kind,
        goal=assignment.goal.kind,
        scene=scene,
        split=split,
        seed=seed,
        pddl_domain=problem.domain(),
        grammar=problem.grammar(assignment),
        pddl_problem=problem.problem(house, assignment),
        walkthrough=walkthrough(assignment, house),
    )


def _furnish_some_scene(
    task: TaskType, difficulty: Difficulty, dice: Dice, *, unseen: bool
) -> tuple[int, House, Assignment] | None:
    """The first scene, in random order, where the task is possible."""
    scenes = [
        (room, scene)
        for room in ROOMS
        if task.possible_in(room)
        for scene in scenes_of(room, unseen=unseen)
    ]
    for room, scene in dice.shuffled(scenes):
        plan = floor_plan(room, scene, difficulty)
        if plan is None:
            continue
        furnished = furnish(task, room, plan, difficulty, dice, unseen=unseen)
        if furnished is not None:
            return scene, *furnished
    return None


def split_game(
    split: str,
    index: int,
    *,
    task_types: Sequence[str] | None = None,
    difficulty: Difficulty | str = "normal",
) -> GameFile:
    """Game number ``index`` of a split, the task types taking turns.

    Args:
        split: One of :data:`SPLITS`.
        index: Its number, from 0; a split has no end.
        task_types: The types that take turns, in whatever order they are named; all six if left
            out.
        difficulty: A preset's name or the knobs themselves.
    """
    wanted = {task_type_named(name).name for name in task_types or TASK_TYPES}
    turns = [name for name in TASK_TYPES if name in wanted]
    return generate_game(
        index, task_type=turns[index % len(turns)], difficulty=difficulty, split=split
    )
