from __future__ import annotations

import gzip
import json
import os
import pickle
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict

import pytest

from sandboxgym.core.errors import DataNotFoundError, GameFileError, SnapshotCorruptError
from sandboxgym.sandboxes.text import memory
from sandboxgym.sandboxes.text.engine import Game, load_game
from sandboxgym.sandboxes.text.facts import display_names
from sandboxgym.sandboxes.text.pddl import parse_domain, parse_problem
from tests.sandboxes.text import workshop

WORKSHOP = Game.from_json(workshop.text(), name="workshop")


def moment(position):
    return position.observation, list(position.admissible_commands), position.won


def wander(position, steps, seed=0):
    dice = random.Random(seed)
    for _ in range(steps):
        position.act(dice.choice(position.admissible_commands))
    return position


def first_game(alfworld_games, pattern):
    return sorted(alfworld_games.glob(f"valid_seen/{pattern}/*/game.tw-pddl"))[0]


def toy(domain, problem, grammar, objects="a b c"):
    """A game over plain objects, with actions and symbols given in short."""
    actions = {
        name: f'action {name} {{ template :: "{command}"; feedback :: "{feedback}"; }}'
        for name, (command, feedback) in grammar["actions"].items()
    }
    symbols = {"intro": [{"rhs": "Start."}], **grammar.get("symbols", {})}
    document = "\n".join(actions.values()) + f'grammar :: """{json.dumps(symbols)}""";'
    return Game.from_json(
        json.dumps(
            {
                "pddl_domain": f"(define (domain toy) {domain})",
                "pddl_problem": f"(define (problem p) (:objects {objects}) {problem})",
                "grammar": document,
            }
        ),
        name="toy",
    )


DOING = {"actions": {"do": ("do", "Done.")}}


# --- The same transcript as the stock engine ---


def transcripts(shared_data):
    path = shared_data / "alfworld" / "transcripts_valid_seen.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def test_all_recorded_transcripts_are_equal_character_for_character(shared_data, alfworld_games):
    counted: Counter[str] = Counter()
    for recorded in transcripts(shared_data):
        game = Game.load(alfworld_games / recorded["game"])
        counted["games"] += 1
        for episode in recorded["episodes"]:
            position = game.start()
            assert moment(position) == (episode["obs0"], episode["admissible0"], False)
            for step in episode["steps"]:
                assert position.act(step["action"]) == step["obs"], (recorded["game"], step)
                expected = (step["obs"], step["admissible"], step["won"])
                assert moment(position) == expected, (recorded["game"], step)
                assert position.won == step["done"]
                counted["steps"] += 1
    assert counted == {"games": 140, "steps": 6412}


def older(text):
    """A game file of today in the wording of the first generation."""
    content = json.loads(text)
    for new, old in (
        ("move {o} to {r}", "put {o} in/on {r}"),
        ("You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."),
        ("You arrive at {r.name}.", "You arrive at {lend.name}."),
    ):
        assert new in content["grammar"]
        content["grammar"] = content["grammar"].replace(new, old)
    return json.dumps(content)


def older_command(command):
    return re.sub(r"^move (.*) to ", r"put \1 in/on ", command)


def older_observation(observation):
    return re.sub(r"^You move the (.*) to ", r"You put the \1 in/on ", observation)


def test_the_older_grammar_gives_the_same_games_in_its_own_words(shared_data, alfworld_games):
    moved = 0
    for recorded in list(transcripts(shared_data))[::10]:
        path = alfworld_games / recorded["game"]
        game = Game.from_json(older(path.read_text("utf-8")), name="older")
        for episode in recorded["episodes"]:
            position = game.start()
            for step in episode["steps"]:
                observation = position.act(older_command(step["action"]))
                assert list(position.admissible_commands) == sorted(
                    map(older_command, step["admissible"])
                )
                moved += "in/on" in observation
                if step["obs"].startswith("You arrive at"):
                    assert re.match(r"You arrive at loc \d+\. ", observation)
                else:
                    assert observation == older_observation(step["obs"])
    assert moved > 10


@pytest.mark.parametrize("number", range(len(workshop.recordings())))
def test_a_game_of_another_kind_is_told_as_the_stock_engine_tells_it(number):
    recorded = workshop.recordings()[number]
    game = Game.from_json(workshop.text(pddl_problem=recorded["problem"]), name="workshop")
    position = game.start()
    for step in recorded["steps"]:
        if step["action"] is not None:
            position.act(step["action"])
        assert moment(position) == (step["obs"], step["admissible"], step["won"]), step["action"]


# --- What the player can count on ---


def test_a_command_must_match_to_the_letter_after_stripping():
    position = WORKSHOP.start()
    before = position.get_state()["facts"]
    for command in ("Look", "look around", "loo", "", "open  box 2", "open box 9"):
        assert position.act(command) == "Nothing happens."
        assert position.get_state()["facts"] == before
    assert position.act("  open box 2\n").startswith("Opened the box 2")


def test_no_receptacle_where_one_stands_can_be_gone_to(alfworld_games):
    """Going where one is changes nothing, and what changes nothing is no action."""
    path = first_game(alfworld_games, "*-DeskLamp-323")
    content = json.loads(path.read_text("utf-8"))
    problem = parse_problem(content["pddl_problem"], parse_domain(content["pddl_domain"]))
    names = display_names({name for fact in problem.init for name in fact[1:]})
    places = defaultdict(set)
    for fact in problem.init:
        if fact[0] == "receptacleatlocation":
            places[fact[2]].add(f"go to {names[fact[1]]}")
    assert max(map(len, places.values())) > 1, "this house has receptacles at one place"

    position = Game.load(path).start()
    everywhere = set().union(*places.values())
    for here in places.values():
        position.act(min(here))
        going = {c for c in position.admissible_commands if c.startswith("go to ")}
        assert going == everywhere - here


def test_winning_is_a_matter_of_the_state_not_of_the_past(alfworld_games):
    game = Game.load(first_game(alfworld_games, "pick_and_place_simple-*"))
    position = game.start()
    for command in game.walkthrough:
        assert not position.won
        position.act(command)
    assert position.won
    thing, place = re.fullmatch(r"move (.*) to (.*)", game.walkthrough[-1]).groups()
    position.act(f"take {thing} from {place}")
    assert not position.won
    position.act(game.walkthrough[-1])
    assert position.won


def test_a_game_knows_its_task_and_walkthrough(alfworld_games):
    path = first_game(alfworld_games, "look_at_obj_in_light-*")
    game = load_game(path)
    assert game.start().observation.endswith(f"Your task is to: {game.task}")
    assert list(game.walkthrough) == json.loads(path.read_text("utf-8"))["walkthrough"]
    assert WORKSHOP.task == "light all."
    assert WORKSHOP.walkthrough == ("look",)


@pytest.mark.parametrize("walkthrough", [None, []])
def test_a_game_needs_no_walkthrough(walkthrough):
    assert Game.from_json(workshop.text(walkthrough=walkthrough)).walkthrough == ()


def test_names_count_down_and_basins_count_apart():
    ids = ["sink_bar_1", "sink_bar_1_bar_sinkbasin", "mug_bar_1", "mug_bar_2", "a_comma_b"]
    assert display_names(ids) == {
        "a_comma_b": "a,b ",
        "mug_bar_1": "mug 2",
        "mug_bar_2": "mug 1",
        "sink_bar_1": "sink 1",
        "sink_bar_1_bar_sinkbasin": "sinkbasin 1",
    }


# --- State ---


def test_a_state_brings_a_position_back_exactly():
    position = wander(WORKSHOP.start(), 10)
    state, before = position.get_state(), moment(position)
    after = [moment(wander(position, 1, seed)) for seed in range(10)]
    position.set_state(state)
    assert moment(position) == before
    assert position.get_state() == state
    assert [moment(wander(position, 1, seed)) for seed in range(10)] == after


def test_a_state_is_small_plain_data_for_any_copy_of_the_game(alfworld_games):
    path = first_game(alfworld_games, "pick_two_obj_and_place-*")
    position = wander(Game.load(path).start(), 30)
    state = position.get_state()
    assert {key: type(value) for key, value in state.items()} == {
        "facts": bytes,
        "observation": str,
    }
    assert len(pickle.dumps(state)) < 2_000
    other = Game.load(path).start()
    other.set_state(pickle.loads(pickle.dumps(state)))  # noqa: S301 - our own bytes
    assert moment(other) == moment(position)


def test_positions_of_one_game_do_not_see_each_other():
    one, other = WORKSHOP.start(), WORKSHOP.start()
    before = moment(other)
    wander(one, 20)
    assert moment(other) == before
    assert moment(WORKSHOP.start()) == before


def test_what_a_game_remembers_cannot_be_seen(monkeypatch):
    """A game that forgets all the time says the same as one that remembers and a fresh one."""

    def walk(game):
        position = game.start()
        dice = random.Random(5)
        return [moment(wander(position, 1, dice.random())) for _ in range(300)]

    expected = walk(WORKSHOP)
    assert walk(WORKSHOP) == expected
    monkeypatch.setattr(memory, "MAX_REMEMBERED", 1)
    assert walk(Game.from_json(workshop.text())) == expected


def test_a_memory_forgets_when_it_is_full():
    kept = memory.Memory(room=3)
    for key in range(10):
        assert kept.keep(key, str(key)) == str(key)
        assert kept.get(key) == str(key)
        assert len(kept) <= 3
    assert kept.get(0) is None


@pytest.mark.parametrize("facts", [b"", b"\0" * (WORKSHOP.state_bytes + 1)])
def test_a_state_of_another_game_is_refused_and_the_position_kept(facts):
    position = wander(WORKSHOP.start(), 3)
    before = moment(position)
    with pytest.raises(SnapshotCorruptError, match="a position of workshop"):
        position.set_state({"facts": facts, "observation": "x"})
    assert moment(position) == before


def test_a_state_with_bits_that_mean_nothing_is_refused():
    game = toy("(:predicates (p)) (:action do :effect (p))", "(:goal (p))", DOING)
    position = game.start()
    position.set_state({"facts": b"\1", "observation": "x"})
    assert position.won
    with pytest.raises(SnapshotCorruptError, match="has 1 facts"):
        position.set_state({"facts": b"\3", "observation": "x"})


@pytest.mark.parametrize("state", [{}, {"facts": 1, "observation": "x"}, {"facts": b"", "x": 1}, 7])
def test_what_is_no_state_at_all_is_refused(state):
    with pytest.raises(SnapshotCorruptError):
        WORKSHOP.start().set_state(state)


WALK = """
import hashlib, random, sys
from sandboxgym.sandboxes.text.engine import Game
from tests.sandboxes.text import workshop
position = Game.from_json(workshop.text()).start()
dice, seen = random.Random(1), hashlib.sha256()
for _ in range(60):
    position.act(dice.choice(position.admissible_commands))
    seen.update(repr((position.get_state(), position.admissible_commands)).encode())
print(seen.hexdigest(), position.plan())
"""


def test_states_are_the_same_in_every_process():
    printed = {
        subprocess.run(
            [sys.executable, "-c", WALK],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(printed) == 1


# --- Loading ---


def test_a_file_is_compiled_again_only_when_it_changed(tmp_path):
    path = tmp_path / "game.tw-pddl"
    path.write_text(workshop.text())
    game = load_game(path)
    assert load_game(str(path)) is game
    path.write_text(workshop.text(walkthrough=["look", "rest"]))
    changed = load_game(path)
    assert changed.walkthrough == ("look", "rest")
    assert changed.digest != game.digest


def test_a_missing_file_is_missing_data(tmp_path):
    for path in (tmp_path / "game.tw-pddl", tmp_path):
        for load in (load_game, Game.load):
            with pytest.raises(DataNotFoundError, match=re.escape(str(path))):
                load(path)


# --- Rules of PDDL and of the grammar that the recordings do not reach ---


def test_adding_wins_over_deleting():
    game = toy(
        "(:predicates (p ?x)) (:action do :parameters (?x) :effect (and (not (p ?x)) (p ?x)))",
        "(:goal (p a))",
        {"actions": {"do": ("do {x}", "Done.")}},
    )
    position = game.start()
    position.act("do a")
    assert position.won


def test_without_a_rule_that_holds_the_position_stays_and_the_error_says_so():
    game = toy(
        "(:predicates (p)) (:action do :effect (p))",
        "(:goal (p))",
        {
            "actions": {"do": ("do", "#said#")},
            "symbols": {"said": [{"condition": "not_p()", "rhs": "no"}]},
        },
    )
    position = game.start()
    with pytest.raises(GameFileError, match="toy: no alternative of symbol 'said'"):
        position.act("do")
    assert moment(position) == ("Start.", ["do"], False)


def test_a_list_needs_its_separators_only_where_it_is_long_enough():
    game = toy(
        "(:predicates (p ?x)) (:action do :parameters (?x) :effect (p ?x))",
        "(:init (p b)) (:goal (p a))",
        {"actions": {"do": ("do {x}", "[{y.id | p(y:object)}]")}},
    )
    position = game.start()
    assert position.act("do a") == "b", "y never stands for the same object as x"
    with pytest.raises(GameFileError, match="no symbol 'list_last_separator'"):
        position.act("do c")


def test_a_goal_can_be_true_from_the_start_or_out_of_reach():
    domain = "(:predicates (p ?x)) (:action do :parameters (?x) :effect (not (p ?x)))"
    grammar = {"actions": {"do": ("do {x}", "Done.")}}
    assert toy(domain, "(:init (p a)) (:goal (exists (?x) (p ?x)))", grammar).start().won
    assert toy(domain, "(:goal ())", grammar).start().won
    hopeless = toy(domain, "(:init (p a)) (:goal (p b))", grammar).start()
    assert not hopeless.won
    assert hopeless.plan() is None


def test_a_command_of_two_actions_means_the_first():
    game = toy(
        "(:predicates (p) (q)) (:action one :effect (p)) (:action two :effect (q))",
        "(:goal (q))",
        {"actions": {"one": ("do", "One."), "two": ("do", "Two.")}},
    )
    position = game.start()
    assert position.admissible_commands == ("do",)
    assert position.act("do") == "One."
    assert position.plan() is None, "no command can stand for the second action"


def test_a_command_may_depend_on_the_state():
    game = toy(
        "(:predicates (p)) (:action do :effect (p))",
        "(:goal (p))",
        {
            "actions": {"do": ("do #how#", "Done.")},
            "symbols": {"how": [{"condition": "p()", "rhs": "again"}, {"rhs": "first"}]},
        },
    )
    position = game.start()
    assert position.admissible_commands == ("do first",)
    position.act("do first")
    assert position.admissible_commands == ("do again",)
