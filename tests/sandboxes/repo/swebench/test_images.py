"""Tasks in Docker images: unpacked once, without their history, and run without Docker."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import gymnasium as gym
import pytest

from sandboxgym.core.errors import DataNotFoundError
from sandboxgym.sandboxes.repo.backend import Limits
from sandboxgym.sandboxes.repo.bases import RepositoryError
from sandboxgym.sandboxes.repo.docker.backend import connect
from sandboxgym.sandboxes.repo.swebench.images import FromImages
from sandboxgym.sandboxes.repo.swebench.rows import RowError, row_of
from tests.sandboxes.repo.conftest import make_overlay_backend
from tests.sandboxes.repo.docker_daemon import IMAGE, make_image
from tests.sandboxes.repo.swebench.test_env import CODE, FIX, RAW, VISIBLE

OURS = "sandboxgym-test-calc:latest"
ROW = row_of({**RAW, "image": OURS})


@pytest.fixture(scope="module")
def client(docker_address, tmp_path_factory):
    """A daemon with the image of a task, in whose history the repair can be read."""
    tree = tmp_path_factory.mktemp("made") / "repo"
    (tree / "tests").mkdir(parents=True)
    for name, text in {
        "calc.py": CODE.replace("a - b", "a + b"),
        "tests/__init__.py": "",
        "tests/test_calc.py": VISIBLE,
        ".gitignore": "built\n",
    }.items():
        (tree / name).write_text(text)
    who = ["git", "-C", tree, "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "the repair"]):
        subprocess.run([*who, *words], check=True)
    (tree / "calc.py").write_text(CODE)
    subprocess.run([*who, "commit", "-qam", "broken"], check=True)
    (tree / "built").write_text("made by an installation\n")
    hook = tree / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\ntouch {tree.parent}/the-hook-was-run\n")
    hook.chmod(0o755)
    client = connect(docker_address)
    make_image(client, OURS, tree)
    yield client
    assert not (tree.parent / "the-hook-was-run").exists()
    client.images.remove(OURS, force=True)
    client.close()


@pytest.fixture(scope="module")
def env(client, tmp_path_factory):
    with make_overlay_backend(Limits(seconds=30.0)) as backend:
        base_of = FromImages(client, cache=tmp_path_factory.mktemp("cache"))
        env = gym.make("sandboxgym/SWEBench-v0", rows=[ROW], base_of=base_of, backend=backend)
        yield env
        env.close()


def test_it_is_graded_as_any_other_task(env):
    env.reset(seed=1)
    assert env.step({"submit": True})[1] == 0.0
    env.reset(seed=1)
    assert env.step(FIX)[0]["returncode"] == 0
    _, reward, _, _, info = env.step({"submit": True})
    assert (reward, info["reward_valid"], info["failure_reason"]) == (1.0, True, "")


def test_its_history_is_gone_and_what_was_built_is_not(env):
    env.reset(seed=1)
    assert env.step("git log --all --format=%s")[0]["output"] == "base\n"
    assert env.step("git status --short; cat built")[0]["output"] == "made by an installation\n"
    search = "git cat-file --batch-all-objects --batch | grep -c 'a + b'; grep -rc 'a + b' .git"
    assert {line[-1] for line in env.step(search)[0]["output"].split()} == {"0"}


def test_the_image_is_unpacked_once(client, tmp_path):
    base_of = FromImages(client, cache=tmp_path)
    first = base_of(ROW)
    when = first.root.stat().st_ctime_ns
    assert base_of(ROW) == first
    assert first.root.stat().st_ctime_ns == when


def test_what_cannot_be_a_tree_is_named(client, tmp_path):
    base_of = FromImages(client, cache=tmp_path)
    with pytest.raises(RowError, match="'image' is empty"):
        base_of(replace(ROW, image=""))
    with pytest.raises(DataNotFoundError, match="no image 'none:such'"):
        base_of(replace(ROW, image="none:such"))
    with pytest.raises(RepositoryError, match="no repository"):
        base_of(replace(ROW, image=IMAGE))
