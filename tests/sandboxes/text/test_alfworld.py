from __future__ import annotations

import gzip
import itertools
import json
import random
import shutil
import warnings
from collections import Counter

import gymnasium as gym
import pytest

import sandboxgym as sg
from sandboxgym.core import errors
from sandboxgym.core.digest import first_difference
from sandboxgym.sandboxes.text.alfworld import ALFWorldEnv
from sandboxgym.sandboxes.text.synthetic import write_games

SEEN = {  # what the benchmark counts
    "pick_and_place_simple": 35,
    "look_at_obj_in_light": 13,
    "pick_clean_then_place_in_recep": 27,
    "pick_heat_then_place_in_recep": 16,
    "pick_cool_then_place_in_recep": 25,
    "pick_two_obj_and_place": 24,
}


def make(**kwargs):
    options = {"source": "synthetic", "difficulty": "easy", "num_games": 12, **kwargs}
    return gym.make("sandboxgym/ALFWorld-v0", **options)


@pytest.fixture
def env():
    return make()


def walk(env, info, steps, dice):
    results = []
    for _ in range(steps):
        results.append(list(env.step(dice.choice(info["admissible_commands"]))))
        info = results[-1][-1]
        if results[-1][2] or results[-1][3]:
            break
    return results


def test_an_episode_is_won_by_its_walkthrough_and_pays_once(env):
    for index in range(12):
        _, info = env.reset(options={"index": index})
        assert info["task_type"] in SEEN
        rewards = []
        for command in env.unwrapped.expert():
            assert command in info["admissible_commands"]
            _, reward, terminated, truncated, info = env.step(command)
            rewards.append(reward)
        assert rewards == [0.0] * (len(rewards) - 1) + [1.0]
        assert terminated
        assert not truncated
        assert info["won"]
        assert env.unwrapped.expert() == []


def test_fifty_steps_are_the_limit_also_after_a_restore(env):
    env.reset(seed=1)
    for _ in range(30):
        env.step("look")
    snap = env.snapshot()
    for _ in range(2):
        truncated = [env.step("look")[3] for _ in range(20)]
        assert truncated == [False] * 19 + [True]
        env.restore(snap)


def test_the_seed_decides_the_game_and_an_unseeded_reset_draws_the_next(env):
    first = [env.reset(seed=5)[1]["game"], *(env.reset()[1]["game"] for _ in range(5))]
    other = make()
    assert [other.reset(seed=5)[1]["game"], *(other.reset()[1]["game"] for _ in range(5))] == first
    assert len(set(first)) > 1


def test_a_wrong_command_changes_nothing(env):
    _, info = env.reset(seed=2)
    for bad in ("", "go to", "LOOK", "go to nowhere 1", "__import__('os')", "look " * 500, "\x00"):
        obs, reward, terminated, truncated, after = env.step(bad)
        assert (obs, reward, terminated, truncated) == ("Nothing happens.", 0.0, False, False)
        assert after == info
    assert env.step("  look\n")[0] != "Nothing happens."


@pytest.mark.parametrize("action", [None, 3, b"look", ["look"], {"command": "look"}, "\ud800 look"])
def test_an_action_that_is_no_string_is_refused_and_changes_nothing(env, action):
    env.reset(seed=2)
    digest = env.state_digest()
    with pytest.raises(errors.InvalidActionError, match="command"):
        env.step(action)
    assert env.state_digest() == digest
    env.step("look")
    digest = env.state_digest()
    with pytest.raises(errors.InvalidActionError):
        env.step(action)
    assert env.state_digest() == digest


def test_order_is_enforced(env):
    with pytest.raises(errors.NotResetError):
        env.step("look")
    env.reset(options={"index": 0})
    for command in env.unwrapped.expert():
        env.step(command)
    with pytest.raises(errors.EpisodeEndedError):
        env.step("look")


def test_infos_belong_to_the_caller(env):
    _, info = env.reset(seed=3)
    commands = list(info["admissible_commands"])
    info["admissible_commands"].clear()
    assert env.step("look")[-1]["admissible_commands"] == commands


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"index": 12}, ValueError),
        ({"index": -1}, ValueError),
        ({"index": "1"}, ValueError),
        ({"index": True}, errors.InvalidOptionsError),
        ({"game": "nowhere"}, errors.DataNotFoundError),
        ({"game": 3}, errors.DataNotFoundError),
        ({"level": 3}, ValueError),
        ({"index": 1, "game": "x"}, ValueError),
    ],
)
def test_bad_options_are_refused_and_the_episode_goes_on(env, options, error):
    env.reset(seed=3)
    env.step("look")
    digest = env.state_digest()
    with pytest.raises(error):
        env.reset(seed=4, options=options)
    assert env.state_digest() == digest


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        ({"split": "test"}, errors.DataNotFoundError, "train, valid_seen, valid_unseen"),
        ({"task_types": ["cook"]}, ValueError, "pick_and_place_simple"),
        ({"task_types": []}, ValueError, "one or more"),
        ({"task_types": "look_at_obj_in_light"}, ValueError, "list"),
        ({"difficulty": "evil"}, ValueError, "easy"),
        ({"source": "web"}, ValueError, "synthetic"),
        (
            {"source": "real", "games_dir": "/nowhere"},
            errors.DataNotFoundError,
            "alfworld-download",
        ),
        ({"game": "/nowhere/game.tw-pddl"}, errors.DataNotFoundError, "no game file"),
    ],
)
def test_bad_arguments_are_refused_with_the_way_out(kwargs, error, match):
    with pytest.raises(error, match=match):
        ALFWorldEnv(**kwargs)


def test_without_data_it_says_that_it_falls_back(monkeypatch, tmp_path):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    with pytest.warns(UserWarning, match="alfworld-download"):
        env = ALFWorldEnv("valid_seen")
    assert env.source == "synthetic"
    assert len(env.games) == 140


def test_data_is_found_where_the_variable_says(monkeypatch, tmp_path):
    write_games(tmp_path / "json_2.1.1", "valid_unseen", 3, difficulty="easy")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = ALFWorldEnv("valid_unseen")
    assert env.source == "real"
    assert len(env.games) == 3


def test_games_that_the_benchmark_does_not_count_are_left_out(tmp_path):
    paths = write_games(tmp_path, "train", 4, difficulty="easy")
    for path, name in zip(paths, ("pick_Sliced-x", "pick_movable-x"), strict=False):
        shutil.move(path.parent.parent, path.parent.parent.with_name(name))
    content = json.loads(paths[2].read_text())
    paths[2].write_text(json.dumps({**content, "solvable": False}, indent=1))
    env = ALFWorldEnv("train", games_dir=tmp_path)
    assert list(env.games) == [paths[3].relative_to(tmp_path).as_posix()]


def test_a_folder_without_a_game_of_the_types_says_so(tmp_path):
    write_games(tmp_path, "train", 1, difficulty="easy", task_types=["look_at_obj_in_light"])
    with pytest.raises(errors.DataNotFoundError, match="pick_two_obj_and_place"):
        ALFWorldEnv("train", games_dir=tmp_path, task_types=["pick_two_obj_and_place"])


def test_a_broken_file_is_a_clear_error_and_the_episode_goes_on(tmp_path):
    (good,) = write_games(tmp_path, "train", 1, difficulty="easy")
    bad = good.parent.parent.with_name("pick_and_place_simple-Zzz-None-Bed-1") / "trial"
    bad.mkdir(parents=True)
    (bad / "game.tw-pddl").write_text(good.read_text()[:1000])
    env = gym.make("sandboxgym/ALFWorld-v0", games_dir=tmp_path)
    names = env.unwrapped.games
    env.reset(options={"game": good.relative_to(tmp_path).as_posix()})
    digest = env.state_digest()
    broken = next(name for name in names if "Zzz" in name)
    with pytest.raises(errors.GameFileError, match="Zzz"):
        env.reset(options={"game": broken})
    assert env.state_digest() == digest


def test_one_file_can_be_played(tmp_path):
    (path,) = write_games(tmp_path, "train", 1, difficulty="easy")
    env = ALFWorldEnv(game=path)
    _, info = env.reset(seed=1)
    assert len(env.games) == 1
    assert path.as_posix().endswith(info["game"])


def test_a_snapshot_finds_its_game_in_another_folder_but_not_another_game(tmp_path):
    for name in ("here", "there"):
        write_games(tmp_path / name, "train", 3, difficulty="easy")
    here, there = (
        gym.make("sandboxgym/ALFWorld-v0", games_dir=tmp_path / name) for name in ("here", "there")
    )
    here.reset(options={"index": 1})
    here.step("look")
    snap = here.snapshot()
    there.restore(snap)
    assert there.state_digest() == here.state_digest()

    changed = tmp_path / "there" / there.unwrapped.games[1]
    content = json.loads(changed.read_text())
    changed.write_text(json.dumps({**content, "walkthrough": ["look"]}))
    fresh = gym.make("sandboxgym/ALFWorld-v0", games_dir=tmp_path / "there")
    with pytest.raises(errors.SandboxGymError, match="other content"):
        fresh.restore(snap)


def test_a_snapshot_of_another_split_or_difficulty_is_refused(env):
    env.reset(seed=1)
    for other in (make(split="valid_seen"), make(difficulty="normal"), make(num_games=5)):
        with pytest.raises(errors.SpecMismatchError):
            other.restore(env.snapshot())


def test_the_expert_plan_follows_the_walkthrough_and_plans_off_it():
    env = make(expert_plan=True)
    _, info = env.reset(options={"index": 0})
    plan = info["expert_plan"]
    _, _, _, _, info = env.step(plan[0])
    assert info["expert_plan"] == plan[1:]
    _, _, _, _, info = env.step("look")
    detour = info["expert_plan"]
    assert detour
    snap = env.snapshot()
    for command in detour:
        _, _, terminated, _, info = env.step(command)
    assert terminated
    assert info["expert_plan"] == []
    assert env.restore(snap)[1]["expert_plan"] == detour


@pytest.mark.parametrize(
    ("every", "expected"), [(10, 636), pytest.param(1, 6412, marks=pytest.mark.slow)]
)
def test_recorded_transcripts_through_the_whole_stack(alfworld_games, shared_data, every, expected):
    """Real games, real engine's record: observation, admissible commands, won and done."""
    path = shared_data / "alfworld" / "transcripts_valid_seen.jsonl.gz"
    env = gym.make(
        "sandboxgym/ALFWorld-v0",
        split="valid_seen",
        games_dir=alfworld_games,
        max_episode_steps=1000,
    )
    steps = 0
    with gzip.open(path, "rt") as lines:
        for record in itertools.islice(map(json.loads, lines), 0, None, every):
            for episode in record["episodes"]:
                obs, info = env.reset(options={"game": record["game"]})
                assert obs == episode["obs0"]
                assert info["admissible_commands"] == episode["admissible0"]
                for step in episode["steps"]:
                    obs, reward, terminated, _, info = env.step(step["action"])
                    assert obs == step["obs"]
                    assert info["admissible_commands"] == step["admissible"]
                    assert (info["won"], terminated) == (step["won"], step["done"])
                    assert reward == float(step["won"])
                    steps += 1
    assert steps == expected


def test_the_real_split_is_the_one_that_the_benchmark_counts(alfworld_games):
    env = ALFWorldEnv("valid_seen", games_dir=alfworld_games)
    assert list(env.games) == sorted(env.games)
    assert Counter(name.split("/")[1].split("-")[0] for name in env.games) == SEEN
    only = ALFWorldEnv("valid_seen", games_dir=alfworld_games, task_types=["look_at_obj_in_light"])
    assert len(only.games) == 13


def test_a_snapshot_of_a_real_game_is_small_and_restores_by_recipe(alfworld_games):
    kwargs = {"split": "valid_seen", "games_dir": alfworld_games}
    env = gym.make("sandboxgym/ALFWorld-v0", **kwargs)
    dice = random.Random(0)
    _, info = env.reset(options={"index": 70})
    walk(env, info, 40, dice)
    snap = env.snapshot()
    assert len(snap.to_bytes()) <= 20_000
    future = walk(env, snap.last.info, 5, random.Random(1))
    for moment in (snap, snap.drop_state(), sg.Snapshot.from_bytes(snap.to_bytes())):
        fresh = gym.make("sandboxgym/ALFWorld-v0", **kwargs)
        _, info = fresh.restore(moment)
        assert first_difference(walk(fresh, info, 5, random.Random(1)), future) is None
