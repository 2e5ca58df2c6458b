"""Each search example wins, and what it says wins in a fresh environment too."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

import sandboxgym as sg

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import beam
import best_of_n
import household
import mcts
import undo


def played(seed: int, commands) -> float:
    """The return of some commands, from the start and by nothing but steps."""
    env = household.make_env()
    env.reset(seed=seed)
    total = 0.0
    for command in commands:
        _, reward, *_ = env.step(command)
        total += float(reward)
    env.close()
    return total


def test_beam_search_wins_all_its_games_by_commands_that_win():
    lines = beam.main(games=4)
    assert [played(seed, line.said) for seed, line in enumerate(lines)] == [1.0] * 4


def test_a_beam_that_is_too_short_says_that_it_found_nothing():
    env = household.make_env(max_episode_steps=-1)
    assert beam.search(env, 0, depth=3) is None
    env.close()


def test_monte_carlo_tree_search_wins_by_commands_that_win(capsys):
    env = household.make_env(max_episode_steps=20)
    for seed in (0, 1):
        said, paid = mcts.play(env, seed)
        assert paid == 1.0
        assert played(seed, said) == 1.0
    env.close()


def test_the_tree_adds_up_and_a_simulation_leaves_the_present_as_it_was():
    env = household.make_env(max_episode_steps=20)
    seen, info = env.reset(seed=0)
    before = sg.state_digest(env)
    search = mcts.Search(env, household.task_of(seen), random.Random(0))
    root = search.node(info)
    for _ in range(40):
        search.simulate(root, horizon=5)
    assert root.visits == 40 == sum(child.visits for child in root.children.values())
    sg.restore(env, root.moment)
    assert sg.state_digest(env) == before
    env.close()


def test_rollback_wins_more_than_whole_episodes_of_the_same_number_of_steps():
    won = best_of_n.main(games=8)
    assert won["with rollback"] == 8
    assert won["whole episodes"] <= 6


def test_the_agent_that_takes_back_wins_by_what_it_left_standing(capsys):
    tools = undo.Tools(household.make_env())
    explorer = undo.Explorer(tools)
    for seed in (0, 1, 4):
        assert explorer.solve(seed, depth=8, acts=3000)
        assert len(tools.said) <= 8
        assert played(seed, tools.said) == 1.0
        assert list(sg.snapshot(tools.env).recipe.actions) == tools.said
    tools.env.close()
    assert undo.main(games=1) == [True]
    assert "taken back" in capsys.readouterr().out


def test_more_is_taken_back_than_an_episode_has_steps():
    tools = undo.Tools(household.make_env())
    explorer = undo.Explorer(tools)
    assert explorer.solve(0, depth=8, acts=3000)
    assert explorer.acts > 50
    tools.env.close()


def test_undo_returns_to_what_was_seen_before_and_says_where_there_is_nothing():
    tools = undo.Tools(household.make_env())
    start = tools.start(seed=0)
    commands = tools.commands()
    tools.act(commands[0])
    assert tools.commands() != commands
    assert tools.undo() == start
    assert tools.commands() == commands
    assert tools.undo() == "There is nothing to take back."
    assert tools.said == []
    tools.env.close()


def test_undo_takes_back_the_end_of_an_episode_too():
    tools = undo.Tools(household.make_env(max_episode_steps=2))
    tools.start(seed=0)
    tools.act("look")
    tools.act("look")
    assert tools.over
    assert "take back" in tools.act("look")
    tools.undo()
    assert not tools.over
    tools.act("look")
    assert tools.said == ["look", "look"]
    tools.env.close()


@pytest.mark.parametrize(
    ("task", "command", "words"),
    [
        ("put a hot mug in shelf", "heat mug 1 with microwave 1", 2),
        ("put a hot mug in shelf", "move mug 1 to shelf 1", 2),
        ("put a hot mug in shelf", "go to fridge 1", 0),
        ("examine the pen with the desklamp", "clean cup 1 with sinkbasin 1", 0),
    ],
)
def test_a_hunch_counts_the_words_of_the_task(task, command, words):
    assert household.hunch(task, command) == words
