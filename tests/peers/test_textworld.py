from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sandboxgym as sg
from sandboxgym.core.errors import (
    DataNotFoundError,
    GameFileError,
    InvalidActionError,
    InvalidOptionsError,
    SpecMismatchError,
)
from sandboxgym.sandboxes.text import testbed_games
from sandboxgym.sandboxes.text.textworld import TextWorldEnv
from tests.peers.text_forks import assert_all_ways_lead_on, differing_round_trips, mapped

pytestmark = pytest.mark.peers
textworld = pytest.importorskip("textworld", reason="needs TextWorld")

make = testbed_games.textworld_env


@pytest.fixture(scope="module")
def story() -> Path:
    return testbed_games.textworld_game()


@pytest.fixture
def env():
    env = make()
    env.reset(seed=0)
    yield env
    env.close()


def copy_of(story: Path, folder: Path, name: str = "game") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in (".z8", ".json"):
        shutil.copy(story.with_suffix(suffix), folder / f"{name}{suffix}")
    return folder / f"{name}.z8"


def test_a_thousand_round_trips_show_no_difference():
    assert differing_round_trips(make, 1000) == []


def test_every_way_of_restoring_leads_on_as_if_nothing_had_happened(tmp_path):
    assert_all_ways_lead_on(make, "textworld_env", tmp_path)


def test_it_says_what_textworld_says(story, tmp_path):
    asked = textworld.EnvInfos(admissible_commands=True, score=True, moves=True, won=True)
    reference = textworld.start(str(copy_of(story, tmp_path, "tw-game")), asked)
    env = make()
    obs, info = env.reset(seed=0)
    state = reference.reset()
    for command in [None, "look", "xyzzy", *env.walkthrough]:
        if command is not None:
            obs, *_, info = env.step(command)
            state, _, _ = reference.step(command)
        assert obs == state["feedback"]
        assert info["admissible_commands"] == state["admissible_commands"]
        assert [info["score"], info["moves"], info["won"]] == [
            state["score"],
            state["moves"],
            state["won"],
        ]
    assert info["won"]
    env.close()
    reference.close()


def test_the_walkthrough_wins(env):
    total = 0.0
    for command in env.walkthrough:
        _, reward, terminated, _, info = env.step(command)
        total += reward
    assert terminated
    assert info["won"]
    assert total == info["score"] == info["max_score"]


def test_a_game_is_known_by_its_description_wherever_it_lies_and_whenever_it_was_compiled(
    story, env, tmp_path
):
    other = copy_of(story, tmp_path / "elsewhere", "another_name")
    content = bytearray(other.read_bytes())
    content[0x12:0x18] = b"991231"  # the day of the compilation, in the story's header
    content[0x1C:0x1E] = b"\x12\x34"
    other.write_bytes(content)
    description = json.loads(other.with_suffix(".json").read_text())
    other.with_suffix(".json").write_text(json.dumps(description, indent=2))
    twin = TextWorldEnv(other)
    env.step("look")
    for moment in (env.snapshot(), env.snapshot().drop_state()):
        twin.restore(moment)
        assert twin.state_digest() == env.state_digest()
    assert twin.step("inventory") == env.step("inventory")
    twin.close()


def test_another_compiler_s_story_takes_the_recipe_and_not_the_state(story, env, tmp_path):
    other = copy_of(story, tmp_path)
    content = bytearray(other.read_bytes())
    content[-1] ^= 1  # padding, which nothing reads
    other.write_bytes(content)
    twin = TextWorldEnv(other)
    with pytest.raises(SpecMismatchError, match="drop_state"):
        twin.set_state(env.get_state())
    twin.close()


def test_another_game_refuses_the_snapshot(env):
    other = testbed_games.textworld_env(seed=2)
    with pytest.raises(SpecMismatchError):
        other.restore(env.snapshot())
    other.close()


@pytest.mark.parametrize("command", ["save", "restore", "script", "undo"])
def test_the_game_has_no_disk_and_no_undo(env, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert isinstance(env.step(command)[0], str)
    assert list(tmp_path.iterdir()) == []


def test_quitting_ends_the_episode_and_not_the_environment(env):
    env.step("quit")
    assert env.step("yes")[2]
    first = env.reset(seed=0)
    twin = make()
    assert first == twin.reset(seed=0)
    assert env.step("look") == twin.step("look")
    twin.close()


def test_files_and_library_are_gone_after_closing(story, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = mapped("libfrotz")
    env = make()
    env.reset(seed=0)
    moment = env.snapshot()
    twin = sg.fork(env, 1)[0]
    env.close()
    env.close()
    assert twin.step("look")[0]
    twin.close()
    assert list(tmp_path.iterdir()) == []
    assert mapped("libfrotz") == before
    env.restore(moment)  # a closed environment may be used again
    env.close()
    assert list(tmp_path.iterdir()) == []


def test_the_files_may_go_while_the_game_is_played(story, tmp_path):
    env = TextWorldEnv(copy_of(story, tmp_path))
    env.reset(seed=0)
    shutil.rmtree(tmp_path)
    assert env.reset(seed=0)[0]
    env.close()


def test_a_missing_file_is_named(story, tmp_path):
    with pytest.raises(DataNotFoundError, match=r"nowhere\.z8"):
        TextWorldEnv(tmp_path / "nowhere.z8")
    alone = Path(shutil.copy(story, tmp_path / "alone.z8"))
    with pytest.raises(DataNotFoundError, match=r"alone\.json"):
        TextWorldEnv(alone)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 1}', "\x00"])
def test_a_bad_description_is_refused(story, tmp_path, text, monkeypatch):
    bad = copy_of(story, tmp_path / "games")
    bad.with_suffix(".json").write_text(text)
    (tmp_path / "temp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    with pytest.raises(GameFileError):
        TextWorldEnv(bad)
    assert list((tmp_path / "temp").iterdir()) == []


def test_a_bad_story_is_refused(story, tmp_path):
    bad = copy_of(story, tmp_path)
    bad.write_bytes(b"\x08" * 1000)
    with pytest.raises(GameFileError):
        TextWorldEnv(bad)


def test_it_takes_no_options_and_only_texts(env):
    with pytest.raises(InvalidOptionsError):
        env.reset(options={"game": 1})
    with pytest.raises(InvalidActionError):
        env.step(1)


def test_many_resets_do_not_fill_the_memory(env):
    for _ in range(20):
        env.reset(seed=0)
    before = resident()
    for _ in range(200):
        env.reset(seed=0)
        env.step("look")
    assert resident() - before < 8 * 2**20


def test_the_same_arguments_make_the_same_game_in_any_process(tmp_path):
    made = []
    for hash_seed in ("1", "2"):
        cache = tmp_path / hash_seed
        subprocess.run(
            [
                sys.executable,
                "-c",
                "from sandboxgym.sandboxes.text.testbed_games import textworld_game\n"
                "textworld_game(3, rooms=2, objects=3, quest=2)",
            ],
            check=True,
            capture_output=True,
            env={**os.environ, "SANDBOXGYM_CACHE": str(cache), "PYTHONHASHSEED": hash_seed},
        )
        made.append(next(cache.rglob("*.json")).read_bytes())
    assert made[0] == made[1]


def resident() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")
