from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from sandboxgym.core.errors import (
    DataNotFoundError,
    EpisodeEndedError,
    GameFileError,
    InvalidActionError,
    InvalidOptionsError,
    SpecMismatchError,
)
from sandboxgym.sandboxes.text import testbed_games
from sandboxgym.sandboxes.text.jericho import JerichoEnv
from tests.peers.text_forks import NOISE, assert_all_ways_lead_on, differing_round_trips, mapped
from tests.peers.tiny_story import tiny_story

pytestmark = pytest.mark.peers
jericho = pytest.importorskip("jericho", reason="needs Jericho")
pytest.importorskip("textworld", reason="needs TextWorld, which makes the games")

make = testbed_games.jericho_env


@pytest.fixture(scope="module")
def story() -> Path:
    return testbed_games.textworld_game()


@pytest.fixture(scope="module")
def vocabulary(story: Path) -> list[str]:
    """Commands of all kinds about all things; this game lists none."""
    things = [
        info["name"]
        for _, info in json.loads(story.with_suffix(".json").read_text())["infos"]
        if info["name"]
    ]
    verbs = ("take", "drop", "open", "close", "examine", "look", "go")
    commands = [f"{verb} {thing}" for verb in verbs for thing in things]
    return [*commands, *(f"go {way}" for way in ("north", "east", "south", "west"))] * 3 + [*NOISE]


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A story for an old machine, with dice; played in an empty folder."""
    file = tmp_path / "tiny.z3"
    file.write_bytes(tiny_story())
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return lambda: JerichoEnv(file)


def choose_from(vocabulary: list[str]):
    return lambda info, dice: dice.choice(vocabulary)


@pytest.fixture
def env():
    env = make()
    env.reset(seed=0)
    yield env
    env.close()


def test_a_thousand_round_trips_show_no_difference(vocabulary):
    assert differing_round_trips(make, 1000, choose=choose_from(vocabulary)) == []


def test_every_way_of_restoring_leads_on_as_if_nothing_had_happened(vocabulary, tmp_path):
    assert_all_ways_lead_on(make, "jericho_env", tmp_path, choose=choose_from(vocabulary))


def test_a_thousand_round_trips_of_an_old_story_with_dice_show_no_difference(tiny):
    found = differing_round_trips(tiny, 1000, choose=lambda info, dice: dice.choice("dddppptsronx"))
    assert found == []
    assert list(Path.cwd().iterdir()) == []


def test_the_seed_throws_the_dice(tiny):
    def thrown(env, seed):
        env.reset(seed=seed)
        return [env.step("d")[0] for _ in range(5)]

    one, two = tiny(), tiny()
    assert thrown(one, 0) == thrown(two, 0) == thrown(one, 0)
    assert thrown(one, 1) != thrown(two, 0)
    moment = one.snapshot()
    ways = []
    for seed in (None, 5, 6, 5):
        two.restore(moment, seed=seed)
        ways.append([two.step("d")[0] for _ in range(5)])
    assert ways[1] == ways[3]
    assert ways[0] != ways[1] != ways[2]
    one.close()
    two.close()


def test_text_that_was_printed_and_not_shown_goes_along(tiny):
    env = tiny()
    first = env.reset(seed=1)[0]
    said = env.step("p")[0]  # prints dice without the end of a line
    moment = env.snapshot()
    after = env.step("x")[0]
    assert after.strip().split()[0].isdigit()
    assert not said.rstrip().endswith(after.strip().split()[0])
    fresh = tiny()
    fresh.restore(moment)
    assert fresh.step("x")[0] == after
    env.restore(moment)
    env.snapshot()
    assert env.reset(seed=1)[0] == first
    env.close()
    fresh.close()


@pytest.mark.parametrize(("letter", "said"), [("s", "save failed"), ("r", "restore failed")])
def test_an_old_story_has_no_disk_either(tiny, letter, said):
    env = tiny()
    env.reset(seed=1)
    assert said in env.step(letter)[0]
    env.close()


@pytest.mark.parametrize("letter", ["t", "o"])
def test_an_old_story_writes_no_transcript(tiny, letter):
    env = tiny()
    env.reset(seed=1)
    env.step(letter)
    env.step("d")
    assert list(Path.cwd().iterdir()) == []
    env.close()


def test_seed_zero_is_a_seed_and_not_the_clock(story):
    frotz = jericho.FrotzEnv(str(story), seed=0)
    assert frotz._seed == -1  # the library's trap
    states = []
    for seed in (0, 0, 1):
        env = make()
        env.reset(seed=seed)
        states.append(env.get_state()["machine"]["dice"])
        env.close()
    assert states[0] == states[1]
    assert states[0] != states[2]
    assert all(dice[-1] >= 1000 for dice in states)


@pytest.mark.parametrize("command", ["save", "restore", "script", "undo", "transcript on"])
def test_the_game_has_no_disk_and_no_undo(env, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env.step("go south")
    said = env.step(command)[0]
    assert "failed" in said or "does not provide" in said
    assert list(tmp_path.iterdir()) == []


def test_the_library_itself_leaks_a_saved_game_into_other_branches(story, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frotz = jericho.FrotzEnv(str(story), seed=1)
    frotz.reset()
    frotz.step("save")
    assert list(tmp_path.iterdir()) != []


@pytest.mark.parametrize("command", ["\\help", "\\s", "\\mp", "\\U", "\\N", "\\R", "\\unknown"])
def test_no_command_reaches_the_keys_of_the_interpreter(env, command):
    assert isinstance(env.step(command)[0], str)
    assert "look" in env.step("help")[0]


def test_a_second_line_does_not_wait_for_the_next_command(env):
    twin = make()
    twin.reset(seed=0)
    assert env.step("look\ninventory")[0] == twin.step("look inventory")[0]
    assert env.step("look")[0] == twin.step("look")[0]
    twin.close()


def test_a_command_that_is_too_long_is_cut(env):
    env.step("look " * 200)
    assert "You" in env.step("look")[0]


@pytest.mark.parametrize("action", [3, None, b"look", "\ud800"])
def test_an_action_is_a_text(env, action):
    before = env.state_digest()
    with pytest.raises(InvalidActionError):
        env.step(action)
    assert env.state_digest() == before


def test_quitting_ends_the_episode_and_not_the_environment(env):
    moment = env.snapshot()
    env.step("quit")
    *_, terminated, truncated, _ = env.step("yes")
    assert terminated
    assert not truncated
    ended = env.snapshot()
    env.restore(moment)
    twin = make()
    twin.reset(seed=0)
    assert env.step("look") == twin.step("look")
    twin.restore(ended)
    with pytest.raises(EpisodeEndedError):
        twin.step("look")
    assert env.reset(seed=3)[0] == twin.reset(seed=3)[0]
    twin.close()


def test_a_restart_within_the_game_goes_back_to_the_same_dice(tiny):
    env, other = tiny(), tiny()
    first = env.reset(seed=0), env.step("d")
    moment = env.snapshot()
    other.reset(seed=9)
    other.restore(moment)
    for world in (env, other):
        world.step("n")
        assert world.step("d")[0].split()[-1] == first[1][0].split()[-1]
    assert other.state_digest() == env.state_digest()
    env.close()
    other.close()


def test_new_dice_after_a_restore(env):
    moment = env.snapshot()
    dice = []
    for seed in (1, 2, 1):
        env.restore(moment, seed=seed)
        dice.append(env.get_state()["machine"]["dice"])
    assert dice[0] == dice[2] != dice[1]


def test_the_gain_in_score_is_counted_from_the_restored_score(story):
    commands = testbed_games.textworld_env().walkthrough
    env, fresh = make(), make()
    env.reset(seed=0)
    for command in commands[:-1]:
        env.step(command)
    moment = env.snapshot()
    fresh.reset(seed=1)
    fresh.restore(moment)
    assert fresh.step(commands[-1]) == env.step(commands[-1])
    _, info = fresh.restore(moment)
    _, reward, terminated, _, after = fresh.step(commands[-1])
    assert terminated
    assert after["won"]
    assert reward == after["score"] - info["score"] > 0
    env.close()
    fresh.close()


def test_the_day_of_compilation_is_not_part_of_the_game(story, tmp_path):
    other = tmp_path / story.name
    content = bytearray(story.read_bytes())
    content[0x12:0x18] = b"991231"
    content[0x1C:0x1E] = b"\x12\x34"
    other.write_bytes(content)
    one, two = JerichoEnv(story), JerichoEnv(other)
    one.reset(seed=0)
    one.step("look")
    moment = one.snapshot()
    two.restore(moment)
    assert two.state_digest() == one.state_digest()
    two.restore(moment.drop_state())
    assert two.step("inventory") == one.step("inventory")
    one.close()
    two.close()


def test_another_game_refuses_the_snapshot(env):
    other = testbed_games.jericho_env(seed=2)
    with pytest.raises(SpecMismatchError):
        other.restore(env.snapshot())
    other.close()


def test_a_file_that_is_gone_is_an_error_and_not_the_end_of_the_process(story, tmp_path):
    copy = Path(shutil.copy(story, tmp_path / "tw-copy.z8"))
    env = JerichoEnv(copy)
    env.reset(seed=0)
    said = env.step("look")
    copy.unlink()
    moment = env.snapshot()
    with pytest.raises(DataNotFoundError, match=r"tw-copy\.z8"):
        env.reset(seed=1)
    assert env.step("look")[0] == said[0]
    env.restore(moment)
    env.close()


@pytest.mark.parametrize(
    "content", [b"", b"\x08" * 10, b"\x00" * 400_000, b"\x06" * 400_000, b"PK" + b"\x00" * 5000]
)
def test_a_file_that_is_no_story_is_refused(content, tmp_path):
    file = tmp_path / "bad.z8"
    file.write_bytes(content)
    with pytest.raises(GameFileError, match=r"bad\.z8"):
        JerichoEnv(file)


def test_a_story_that_is_cut_short_is_refused(story, tmp_path):
    file = tmp_path / "cut.z8"
    file.write_bytes(story.read_bytes()[:100_000])
    with pytest.raises(GameFileError, match="damaged"):
        JerichoEnv(file)


def test_the_interpreters_seed_can_be_given(env):
    env.reset(options={"dice": 1234567})
    assert env.get_state()["machine"]["dice"][-1] == 1234567
    for wrong in ({"dice": 0}, {"dice": "1"}, {"seed": 1}, {"dice": True}):
        with pytest.raises(InvalidOptionsError):
            env.reset(options=wrong)


def test_closing_unloads_the_interpreter():
    before = mapped("libfrotz")
    envs = [make() for _ in range(3)]
    for env in envs:
        env.reset(seed=0)
        env.snapshot()
    assert mapped("libfrotz") > before
    for env in envs:
        env.close()
    del env
    assert mapped("libfrotz") == before


def test_observations_are_in_their_space(env, vocabulary):
    dice = random.Random(3)
    for _ in range(100):
        assert env.step(dice.choice(vocabulary))[0] in env.observation_space
