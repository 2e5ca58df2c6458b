"""Each fork has temporary files and open files of its own."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

import sandboxgym as sg
from tests.mechanisms.process_lab import answer, lab


@pytest.fixture
def env():
    env = lab()
    yield env
    env.close()


def test_temporary_files_are_restored(env):
    env.step("write a one")
    env.step("makedirs deep/er")
    env.step("write deep/er/b two")
    snapshot = env.snapshot()
    env.step("write a changed")
    env.step("remove deep/er/b")
    env.step("write c three")
    env.restore(snapshot)
    assert answer(env, "read a") == "one"
    assert answer(env, "read deep/er/b") == "two"
    assert sorted(answer(env, "list")) == ["a", "deep"]


def test_forks_see_one_path_and_their_own_content(env):
    env.step("write a parent")
    left, right = sg.fork(env, 2)
    left.step("write a left")
    right.step("write a right")
    assert [answer(e, "read a") for e in (env, left, right)] == ["parent", "left", "right"]
    assert answer(env, "folder") == answer(left, "folder") == answer(right, "folder")
    left.close()
    right.close()


def test_folders_are_listed_in_the_same_order(env):
    for name in "dbaec":
        env.step(f"write {name} x")
    env.step("remove b")
    env.step("write b y")
    before = answer(env, "list")
    snapshot = env.snapshot()
    assert answer(env, "list") == before
    env.restore(snapshot)
    assert answer(env, "list") == before
    env.step("write f z")
    after = answer(env, "list")
    env.restore(snapshot)
    env.step("write f z")
    assert answer(env, "list") == after


def test_a_single_copy_is_listed_in_the_same_order():
    env = lab(built="several")
    assert answer(env, "list") == answer(env, "built")
    env.close()


def test_links_stay_links(env):
    env.step("write a one")
    env.step("makedirs d")
    env.step("link a d/same")
    env.restore(env.snapshot())
    env.step("write a two")
    assert answer(env, "read d/same") == "two"


def test_what_building_wrote_is_in_every_fresh_instance():
    env = lab(built="write a built")
    env.step("write a changed")
    twin = env.spawn()
    twin.reset(seed=1)
    assert answer(twin, "read a") == "built"
    twin.close()
    env.close()


def test_the_working_folder_can_be_inside(env):
    env.step("makedirs home")
    env.step("chdir home")
    (twin,) = sg.fork(env, 1)
    twin.step("write home/a mine")
    assert answer(twin, "cwd") == answer(env, "cwd")
    assert answer(env, "cwd").endswith("/home")
    twin.close()


def test_files_that_are_read_have_a_position_each(env, tmp_path):
    (tmp_path / "text").write_text("abcdefgh")
    env.step(f"open r {tmp_path / 'text'}")
    assert answer(env, "get 2") == "ab"
    snapshot = env.snapshot()
    assert answer(env, "get 2") == "cd"
    (twin,) = sg.fork(env, 1)
    assert answer(twin, "get 2") == "ef"
    assert answer(env, "get 2") == "ef"
    env.restore(snapshot)
    assert answer(env, "get 3") == "cde"
    twin.close()


@pytest.mark.parametrize("how", ["open w+ a", "nameless", "memory"])
def test_files_that_are_written_are_copied(env, how):
    env.step(how)
    env.step("put one")
    snapshot = env.snapshot()
    (twin,) = sg.fork(env, 1)
    twin.step("put -left")
    env.step("put -right")
    assert answer(twin, "all") == "one-left"
    assert answer(env, "all") == "one-right"
    env.restore(snapshot)
    env.step("put -again")
    assert answer(env, "all") == "one-again"
    twin.close()


@pytest.mark.parametrize("how", ["open w+ a", "nameless"])
def test_descriptors_that_share_a_position_go_on_sharing_it(env, how):
    env.step(how)
    env.step("put one")
    env.step("twice")
    env.restore(env.snapshot())
    env.step("put two")
    assert answer(env, "all") == "onetwo"


def test_the_folder_has_the_same_path_in_each_run_and_is_removed_where_there_is_no_home(
    env, monkeypatch, tmp_path
):
    other = lab()
    assert answer(other, "folder") == answer(env, "folder")
    other.close()
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # no folder can be made in it
    homeless = lab()
    homeless.step("write a text")
    homeless.restore(homeless.snapshot())
    assert answer(homeless, "read a") == "text"
    folder = answer(homeless, "folder")
    assert folder != answer(env, "folder")
    homeless.close()
    del homeless
    gc.collect()
    assert not Path(folder).exists()
