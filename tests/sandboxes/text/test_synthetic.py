from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandboxgym.core.errors import DataNotFoundError
from sandboxgym.sandboxes.text.engine import Game, Position
from sandboxgym.sandboxes.text.synthetic import (
    PRESETS,
    SPLITS,
    TASK_TYPES,
    Difficulty,
    GameFile,
    generate_game,
    split_game,
    write_games,
)
from sandboxgym.sandboxes.text.synthetic.__main__ import main
from sandboxgym.sandboxes.text.synthetic.rooms import CONTAINS, OPENABLE, ROOMS
from sandboxgym.sandboxes.text.synthetic.scenes import floor_plan, scenes_of

# The digest of a few games of every kind. It may change only when the generator is meant to give
# other games, which makes results on synthetic games of different versions incomparable.
GOLDEN = "598bf8522814faaf8fa3834de2499bfc584d703bbd1d033228087b7882557d55"

GOLDEN_SCRIPT = """
import hashlib
from sandboxgym.sandboxes.text.synthetic import PRESETS, SPLITS, split_game
digest = hashlib.sha256()
for difficulty in PRESETS:
    for split in SPLITS:
        for index in range(6):
            game = split_game(split, index, difficulty=difficulty)
            digest.update(game.name.encode() + game.to_json().encode())
print(digest.hexdigest())
"""

ENGINE_SETTINGS = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def start(game: GameFile) -> Position:
    return Game.from_json(game.to_json(), name=game.name).start()


def assert_walkthrough_wins_with_its_last_command(game: GameFile) -> Position:
    position = start(game)
    for command in game.walkthrough:
        assert not position.won, f"{game.name} is won before {command!r}"
        assert command in position.admissible_commands
        position.act(command)
    assert position.won, f"{game.name} is not won by its walkthrough"
    return position


def facts(game: GameFile, predicate: str) -> set[tuple[str, ...]]:
    initial = game.pddl_problem.partition("(:init")[2].partition("(:goal")[0]
    return {tuple(found.split()) for found in re.findall(rf"\({predicate} ([^)]*)\)", initial)}


def starting_places(game: GameFile, kind: str) -> list[str]:
    """The kinds of the receptacles that the objects of this kind start in."""
    receptacle_kind = {place: kind for place, kind in facts(game, "receptacleType")}  # noqa: C416
    return [
        receptacle_kind[place].removesuffix("Type")
        for thing, place in facts(game, "inReceptacle")
        if thing.split("_bar_")[0] == kind
    ]


# --- the same seed gives the same game --------------------------------------------------------


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_games_are_the_same_in_every_process_and_version(hash_seed: str) -> None:
    output = subprocess.run(
        [sys.executable, "-c", GOLDEN_SCRIPT],
        env={
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert output.strip() == GOLDEN


def test_leaving_out_the_task_type_gives_the_game_of_the_type_drawn() -> None:
    for seed in range(20):
        game = generate_game(seed)
        assert generate_game(seed, task_type=game.task_type) == game


def test_all_task_types_are_drawn() -> None:
    assert {generate_game(seed).task_type for seed in range(60)} == set(TASK_TYPES)


def test_different_seeds_give_different_games() -> None:
    for difficulty in PRESETS:
        texts = {split_game("train", i, difficulty=difficulty).to_json() for i in range(60)}
        assert len(texts) == 60


# --- every game can be won, and not by accident -----------------------------------------------


@pytest.mark.parametrize("difficulty", PRESETS)
@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_walkthroughs_win(task_type: str, difficulty: str) -> None:
    for split in SPLITS:
        for seed in range(3):
            game = generate_game(seed, task_type=task_type, difficulty=difficulty, split=split)
            assert game.task_type == task_type
            assert_walkthrough_wins_with_its_last_command(game)


@ENGINE_SETTINGS
@given(
    seed=st.integers(0, 10**12),
    task_type=st.sampled_from(list(TASK_TYPES)),
    split=st.sampled_from(SPLITS),
    difficulty=st.builds(
        Difficulty,
        receptacles=st.tuples(st.integers(10, 14), st.integers(14, 18)),
        distractors=st.integers(0, 30),
        closed=st.floats(0, 1),
        lookalikes=st.integers(0, 5),
        hidden=st.floats(0, 1),
        closed_goal=st.floats(0, 1),
        errands=st.integers(0, 4),
    ),
)
def test_walkthroughs_win_whatever_the_knobs(
    seed: int, task_type: str, split: str, difficulty: Difficulty
) -> None:
    game = generate_game(seed, task_type=task_type, difficulty=difficulty, split=split)
    assert_walkthrough_wins_with_its_last_command(game)


def test_distractors_change_neither_the_task_nor_the_walkthrough() -> None:
    for index in range(12):
        bare = replace(PRESETS["normal"], distractors=0)
        full = replace(PRESETS["normal"], distractors=40)
        few, many = (split_game("train", index, difficulty=knobs) for knobs in (bare, full))
        assert len(facts(many, "inReceptacle")) > len(facts(few, "inReceptacle"))
        assert len(starting_places(many, many.target)) == (2 if "two" in many.task_type else 1)
        assert_walkthrough_wins_with_its_last_command(many)


def test_a_task_needs_its_treatment() -> None:
    for task_type, verb in (
        ("pick_clean_then_place_in_recep", "clean"),
        ("pick_heat_then_place_in_recep", "heat"),
        ("pick_cool_then_place_in_recep", "cool"),
    ):
        game = generate_game(1, task_type=task_type)
        position = start(game)
        for command in game.walkthrough:
            if not command.startswith(f"{verb} "):
                position.act(command)
        assert not position.won


def test_picking_one_of_two_is_not_enough() -> None:
    game = generate_game(1, task_type="pick_two_obj_and_place")
    position = start(game)
    for command in game.walkthrough[:-1]:
        position.act(command)
    assert not position.won


def test_errands_are_part_of_the_task() -> None:
    game = generate_game(2, task_type="pick_and_place_simple", difficulty="long")
    position = start(game)
    assert "put five " in position.observation
    moves = [index for index, command in enumerate(game.walkthrough) if "move" in command]
    assert moves[:5] == [3, 7, 11, 15, 19]
    for command in game.walkthrough[20:]:
        position.act(command)
    assert not position.won
    for command in game.walkthrough[:20]:
        position.act(command)
    assert position.won


# --- what the agent reads ---------------------------------------------------------------------


def test_the_introduction_lists_the_room_and_says_the_task() -> None:
    for index in range(len(TASK_TYPES)):
        game = split_game("train", index)
        observation = start(game).observation
        room, task = observation.split("\n\n")[1:]
        assert room.startswith("You are in the middle of a room. Looking quickly around you, ")
        assert len(re.findall(r"a [a-z]+ \d+", room)) == len(facts(game, "receptacleType"))
        assert task.startswith("Your task is to: ")
        assert game.target.lower() in task
        assert game.goal.lower() in task


def test_looking_from_the_middle_of_the_room_shows_nothing_as_in_alfworld() -> None:
    position = start(split_game("train", 0))
    assert position.act("look").endswith("Looking quickly around you, you see nothing.")


def masked(observation: str) -> str:
    """The sentence with names as X and lists of things as LIST."""
    names = re.sub(r"\b[a-z]+ \d+\b", "X", observation)
    return re.sub(r"(a X(, and |, )?)+", "LIST", names).strip()


def test_sentences_are_those_of_alfworld(shared_data: Path) -> None:
    known = set()
    with gzip.open(shared_data / "alfworld/transcripts_valid_seen.jsonl.gz", "rt") as lines:
        for line in lines:
            for episode in json.loads(line)["episodes"]:
                known |= {masked(part) for part in episode["obs0"].split("\n\n")}
                known |= {masked(step["obs"]) for step in episode["steps"]}
    for index in range(18):
        game = split_game("valid_seen", index)
        position = start(game)
        for command in game.walkthrough:
            for said in ("look", "inventory", command):
                assert masked(position.act(said)) in known


# --- names and files --------------------------------------------------------------------------


@given(seed=st.integers(0, 10**8 - 1), split=st.sampled_from(SPLITS))
@settings(max_examples=50, deadline=None)
def test_names_say_task_target_goal_and_scene(seed: int, split: str) -> None:
    game = generate_game(seed, split=split)
    folder, trial = game.name.split("/")
    task_type, target, none, goal, scene = folder.split("-")
    assert (task_type, target, none, goal) == (game.task_type, game.target, "None", game.goal)
    assert any(int(scene) in room.scenes for room in ROOMS)
    assert trial == f"trial_S{seed:08d}"
    assert not re.search("movable|Sliced", game.name)


def test_files_have_the_layout_and_keys_of_the_real_data(tmp_path: Path) -> None:
    paths = write_games(tmp_path, "valid_unseen", 12, difficulty="easy")
    assert len(set(paths)) == 12
    for index, path in enumerate(paths):
        game = split_game("valid_unseen", index, difficulty="easy")
        assert path == tmp_path / "valid_unseen" / game.name / "game.tw-pddl"
        content = json.loads(path.read_text("utf-8"))
        assert list(content) == [
            "pddl_domain",
            "grammar",
            "pddl_problem",
            "solvable",
            "walkthrough",
        ]
        assert content == game.to_dict()
        trajectory = json.loads(path.with_name("traj_data.json").read_text("utf-8"))
        assert trajectory["task_type"] == game.task_type


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--out {tmp} --games -3", "games=-3, start=0: at least one game"),
        ("--out {tmp} --games 0", "games=0, start=0: at least one game"),
        ("--out {tmp} --games 1 --start -1", "games=1, start=-1"),
        ("--out {tmp}/file/below --games 1", "Not a directory"),
    ],
)
def test_the_command_line_refuses_what_it_cannot_write(
    arguments: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stopped:
        main(arguments.format(tmp=tmp_path).split())
    assert stopped.value.code == 2
    assert reason in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_command_line_writes_the_games_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = "--split valid_seen --games 3 --start 4 --difficulty easy --distractors 0"
    main([*arguments.split(), "--out", str(tmp_path), "--task-types", "look_at_obj_in_light"])
    written = sorted(tmp_path.glob("valid_seen/*/*/game.tw-pddl"))
    assert [path.parent.name for path in sorted(written, key=lambda path: path.parent.name)] == [
        "trial_S00000004",
        "trial_S00000005",
        "trial_S00000006",
    ]
    assert all(path.parent.parent.name.startswith("look_at_obj_in_light-") for path in written)
    assert "3 games" in capsys.readouterr().out


def test_the_command_line_refuses_impossible_knobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--out", str(tmp_path), "--receptacles", "2", "3"])
    assert "receptacles=(2, 3)" in capsys.readouterr().err


# --- splits -----------------------------------------------------------------------------------


def test_splits_share_no_game() -> None:
    texts = [
        {split_game(split, index, difficulty="easy").pddl_problem for index in range(120)}
        for split in SPLITS
    ]
    assert len(set.union(*texts)) == 360


@pytest.mark.parametrize("difficulty", PRESETS)
def test_unseen_pairings_and_scenes_are_unseen(difficulty: str) -> None:
    games = {
        split: [split_game(split, index, difficulty=difficulty) for index in range(120)]
        for split in SPLITS
    }
    pairings = {split: {(g.target, g.goal) for g in games[split]} for split in SPLITS}
    scenes = {split: {g.scene for g in games[split]} for split in SPLITS}
    assert not pairings["valid_unseen"] & (pairings["train"] | pairings["valid_seen"])
    assert not scenes["valid_unseen"] & (scenes["train"] | scenes["valid_seen"])
    assert pairings["valid_seen"] & pairings["train"]


@pytest.mark.parametrize("difficulty", PRESETS.values(), ids=PRESETS)
def test_unseen_floor_plans_are_unseen(difficulty: Difficulty) -> None:
    for room in ROOMS:
        seen, unseen = (
            {floor_plan(room, scene, difficulty) for scene in scenes_of(room, unseen=side)}
            for side in (False, True)
        )
        assert not seen & unseen


def test_task_types_take_turns_in_any_order_of_naming() -> None:
    names = ["pick_two_obj_and_place", "look_at_obj_in_light"]
    for task_types in (names, names[::-1]):
        games = [split_game("train", index, task_types=task_types) for index in range(4)]
        assert [game.task_type for game in games] == [
            "look_at_obj_in_light",
            "pick_two_obj_and_place",
        ] * 2


# --- the knobs --------------------------------------------------------------------------------


@pytest.mark.parametrize("difficulty", PRESETS.values(), ids=PRESETS)
def test_rooms_have_the_size_and_doors_asked_for(difficulty: Difficulty) -> None:
    fewest, most = difficulty.receptacles
    for room in ROOMS:
        for scene in room.scenes:
            plan = floor_plan(room, scene, difficulty)
            assert plan is not None
            assert fewest <= len(plan) <= most
            assert max(plan.count(kind) for kind in OPENABLE) >= difficulty.lookalikes
            doors = sum(kind in OPENABLE for kind in plan)
            assert doors >= difficulty.closed * len(plan)


def test_hidden_targets_start_behind_doors_and_others_in_the_open() -> None:
    for hidden in (False, True):
        knobs = replace(PRESETS["normal"], hidden=float(hidden))
        for index in range(24):
            game = split_game("train", index, difficulty=knobs)
            places = starting_places(game, game.target)
            assert all((place in OPENABLE) == hidden for place in places)


def test_everything_starts_where_it_fits_and_no_target_where_it_has_to_go() -> None:
    for index in range(60):
        game = split_game("train", index, difficulty="hard")
        for thing, _ in facts(game, "inReceptacle"):
            kind = thing.split("_bar_")[0]
            assert all(kind in CONTAINS[place] for place in starting_places(game, kind))
        assert game.goal not in starting_places(game, game.target)


def test_easy_games_are_small() -> None:
    for index in range(36):
        game = split_game("train", index, difficulty="easy")
        assert 3 <= len(game.walkthrough) <= 8
        position = start(game)
        for command in game.walkthrough:
            assert 9 <= len(position.admissible_commands) <= 30
            position.act(command)


def test_long_games_begin_with_a_routine_and_fit_into_fifty_steps() -> None:
    for index in range(24):
        game = split_game("train", index, difficulty="long")
        routine, rest = game.walkthrough[:20], game.walkthrough[20:]
        assert [command.split()[0] for command in routine] == ["go", "take", "go", "move"] * 5
        assert any(command.startswith("open ") for command in rest)
        assert len(game.walkthrough) <= 32


# --- refusals ---------------------------------------------------------------------------------


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(DataNotFoundError, match="valid_unseen"):
        generate_game(0, split="test")
    with pytest.raises(ValueError, match="pick_two_obj_and_place"):
        generate_game(0, task_type="pick_three")
    with pytest.raises(ValueError, match="easy, normal, hard, long"):
        generate_game(0, difficulty="impossible")
    with pytest.raises(ValueError, match="seed=-1"):
        generate_game(-1)


def test_a_difficulty_without_unseen_floor_plans_is_refused() -> None:
    # A kitchen of six receptacles with doors wherever possible comes in three shapes.
    knobs = Difficulty(receptacles=(6, 6), closed=1.0, lookalikes=0)
    heat = "pick_heat_then_place_in_recep"
    assert generate_game(0, task_type=heat, difficulty=knobs, split="train")
    with pytest.raises(ValueError, match=r"no scene of valid_unseen .* wider range"):
        generate_game(0, task_type=heat, difficulty=knobs, split="valid_unseen")


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("receptacles", (5, 8)),
        ("receptacles", (9, 8)),
        ("receptacles", (8, 41)),
        ("distractors", -1),
        ("distractors", 81),
        ("closed", 1.1),
        ("hidden", -0.1),
        ("closed_goal", float("nan")),
        ("lookalikes", 11),
        ("errands", 10),
    ],
)
def test_knobs_out_of_range_are_refused(knob: str, value: Any) -> None:
    with pytest.raises(ValueError, match=knob):
        replace(PRESETS["hard"], **{knob: value})
