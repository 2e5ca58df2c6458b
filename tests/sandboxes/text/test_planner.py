from __future__ import annotations

import random

import pytest

from sandboxgym.sandboxes.text.engine import Game, load_game
from tests.sandboxes.text import workshop

TASKS = [
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
]


def follow(position, plan):
    for command in plan:
        assert command in position.admissible_commands
        position.act(command)
    return position.won


@pytest.mark.parametrize("task", TASKS)
def test_a_plan_from_any_state_of_a_real_game_wins(alfworld_games, task):
    dice = random.Random(task)
    for path in sorted(alfworld_games.glob(f"valid_seen/{task}-*/*/game.tw-pddl"))[::6]:
        position = load_game(path).start()
        for detour in (0, 10, 40):
            for _ in range(detour):
                position.act(dice.choice(position.admissible_commands))
            state = position.get_state()
            plan = position.plan()
            assert position.get_state() == state, "planning is no acting"
            assert plan is not None
            assert follow(position, plan)
            assert position.plan() == []
            position.set_state(state)


def test_a_plan_has_no_detours(alfworld_games):
    for path in sorted(alfworld_games.glob("valid_seen/*/*/game.tw-pddl"))[::20]:
        game = load_game(path)
        plan = game.start().plan()
        for place in range(len(plan)):
            position = game.start()
            for command in plan[:place] + plan[place + 1 :]:
                position.act(command)
            assert not position.won


def test_a_state_that_cannot_be_won_any_more_has_no_plan(alfworld_games):
    """In this house the teddybear fits nowhere, so who takes it up has no hand free ever after."""
    (path,) = alfworld_games.glob(
        "train/look_at_obj_in_light-Bowl-None-DeskLamp-302/*/game.tw-pddl"
    )
    position = load_game(path).start()
    assert position.plan() is not None
    position.act("go to bed 1")
    assert position.act("take teddybear 1 from bed 1").startswith("You pick up")
    assert position.plan() is None


def test_conditional_effects_and_quantifiers_are_planned_for():
    position = Game.from_json(workshop.text()).start()
    plan = position.plan()
    assert {"flip toy 1", "wipe toy 1", "clean up"} <= set(plan)
    assert follow(position, plan)


def test_a_plan_is_the_same_every_time():
    position = Game.from_json(workshop.text()).start()
    assert position.plan() == Game.from_json(workshop.text()).start().plan()
