from __future__ import annotations

import copy
import gc
import json
import random
import sys

import pytest

import sandboxgym as sg
from sandboxgym.core.errors import GameFileError, InvalidActionError, NotResetError
from sandboxgym.sandboxes.text import stock_engine, testbed_games
from sandboxgym.sandboxes.text.alfworld import ALFWorldEnv
from sandboxgym.sandboxes.text.stock_alfworld import StockALFWorldEnv
from sandboxgym.sandboxes.text.synthetic import split_game
from tests.peers.text_forks import (
    assert_all_ways_lead_on,
    differing_round_trips,
    mapped,
    some_command,
)

pytestmark = pytest.mark.peers
pytest.importorskip("textworld", reason="needs TextWorld")
pytest.importorskip("fast_downward", reason="needs the planner of ALFWorld's own engine")
pytest.importorskip("alfworld", reason="needs ALFWorld's own engine")

make = testbed_games.stock_alfworld_env


@pytest.fixture
def env():
    env = make()
    env.reset(options={"index": 0})
    yield env
    env.close()


def test_round_trips_show_no_difference():
    found = differing_round_trips(make, 100, depth=12, after=2, seeds=2, fresh_every=5)
    assert found == []


def test_every_way_of_restoring_leads_on_as_if_nothing_had_happened(tmp_path):
    assert_all_ways_lead_on(make, "stock_alfworld_env", tmp_path, depth=4)


def test_it_says_what_our_own_engine_says():
    stock = make()
    ours = ALFWorldEnv(source="synthetic", difficulty="easy", num_games=2)
    dice = random.Random(0)
    for index in (0, 1):
        said = stock.reset(options={"index": index})
        assert said == ours.reset(options={"index": index})
        for _ in range(12):
            command = some_command(said[-1], dice)
            said = stock.step(command)
            assert said == ours.step(command)
            if said[2]:
                break
    stock.close()
    ours.close()


def test_a_stale_number_gives_nonsense_in_the_library_and_never_here():
    one, other = (split_game("train", index, difficulty="easy").to_json() for index in (0, 1))
    engine = stock_engine.engine_for(one)
    there = engine.start
    for command in there.admissible_commands[:3]:
        there = engine.act(there, command)
    later = engine.act(there, "inventory")

    # The trap: the same number, after the library has loaded a game anew.
    env = stock_engine._new_environment()
    env.load(json.loads(other))
    env.reset()
    library = env.unwrapped.downward_lib
    library.set_state_id(there.number)
    operators = library.get_applicable_operators_count()
    assert library.check_goal() or operators != len(there.moment["_valid_actions"])
    library.set_state_id(0)

    # Here another game has another engine, and a position goes with its own.
    elsewhere = stock_engine.engine_for(other)
    elsewhere.act(elsewhere.start, elsewhere.start.admissible_commands[0])
    again = engine.act(there, "inventory")
    assert again.moment["feedback"] == later.moment["feedback"]
    assert again.admissible_commands == later.admissible_commands
    assert not again.won


def test_a_reset_to_the_same_game_leaves_snapshots_valid(env):
    first = env.step("inventory")
    env.reset(options={"index": 0})
    command = env.snapshot().last.info["admissible_commands"][0]
    env.step(command)
    moment = env.snapshot()
    after = env.step("look")
    for index in (1, 0):
        env.reset(options={"index": index})
        env.step("look")
    env.restore(moment)
    assert env.metrics.get("replayed_steps", 0) == 0
    assert env.step("look") == after
    assert first[0]


def test_forks_share_one_engine_and_not_their_state(env):
    before = mapped("libdownward")
    twins = sg.fork(env, 20)
    commands = env.snapshot().last.info["admissible_commands"]
    said = [twin.step(commands[i % len(commands)])[0] for i, twin in enumerate(twins)]
    assert len(set(said)) > 3
    assert mapped("libdownward") == before
    assert env.step(commands[0])[0] == said[0]
    for twin in twins:
        twin.close()


def test_a_game_that_nobody_plays_hands_its_library_on():
    env = make()
    env.reset(options={"index": 0})
    env.reset(options={"index": 1})
    gc.collect()
    before = mapped("libdownward")
    for index in (0, 1, 0, 1):
        env.reset(options={"index": index})
        env.step("look")
        gc.collect()
    assert mapped("libdownward") == before
    env.close()


def test_a_snapshot_keeps_its_engine_after_the_environment_is_closed():
    env = make()
    env.reset(options={"index": 0})
    env.step("look")
    moment = env.snapshot()
    after = env.step("inventory")
    env.close()
    late = make()
    late.restore(moment)
    assert late.metrics.get("replayed_steps", 0) == 0
    assert late.step("inventory") == after
    late.close()


def test_a_copied_snapshot_is_at_the_same_position(env):
    moment = copy.deepcopy(env.snapshot())
    after = env.step("inventory")
    env.restore(moment)
    assert env.metrics.get("replayed_steps", 0) == 0
    assert env.step("inventory") == after


def test_a_closed_environment_has_to_be_reset(env):
    env.close()
    with pytest.raises(NotResetError):
        env.step("look")


def test_the_arguments_of_the_program_stay_as_they_were(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["mine", "--own"])
    env = StockALFWorldEnv(source="synthetic", difficulty="easy", split="valid_seen", num_games=1)
    env.reset(seed=0)
    assert sys.argv == ["mine", "--own"]
    env.close()


def test_a_bad_file_is_refused(tmp_path):
    bad = tmp_path / "game.tw-pddl"
    bad.write_text('{"pddl_domain": "(define", "grammar": "", "pddl_problem": ""}')
    env = StockALFWorldEnv(game=bad)
    with pytest.raises(GameFileError):
        env.reset(seed=0)
    good = make()
    assert good.reset(options={"index": 0})[1]["admissible_commands"]
    good.close()


def test_only_texts_are_commands(env):
    with pytest.raises(InvalidActionError):
        env.step(None)
