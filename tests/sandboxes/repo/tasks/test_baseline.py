"""The tasks in their environment: graded rightly, and some of them solved by a scripted agent."""

from __future__ import annotations

import gymnasium as gym
import pytest

import sandboxgym as sg
from sandboxgym.sandboxes.repo.backend import Limits
from sandboxgym.sandboxes.repo.baseline import Agent, solve
from sandboxgym.sandboxes.repo.bases import commit_anew
from sandboxgym.sandboxes.repo.swebench.rows import row_of
from sandboxgym.sandboxes.repo.tasks import shipped_tasks
from sandboxgym.sandboxes.repo.tasks.repositories import tasks_of_repository
from sandboxgym.sandboxes.repo.tasks.shipped import copy_package
from tests.sandboxes.repo.conftest import make_overlay_backend

ROWS = {row.instance_id: row for row in shipped_tasks()}
SOLVED = "sandboxgym__littlecalc-5"


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("SANDBOXGYM_CACHE", str(tmp_path_factory.mktemp("cache")))
    backend = make_overlay_backend(Limits())
    made = gym.make("sandboxgym/SWEBench-v0", rows="shipped", backend=backend)
    yield made
    made.close()
    backend.close()
    patch.undo()


def submitted(env, name, patch):
    env.reset(options={"instance_id": name})
    if patch:
        assert env.step(f"git apply - <<'END'\n{patch}END")[0]["returncode"] == 0
    _, reward, terminated, _, info = env.step({"submit": True})
    assert terminated
    assert info["reward_valid"], info["failure_reason"]
    return reward


@pytest.mark.parametrize(
    "name",
    [
        f"sandboxgym__{package}-1"
        for package in ("keepcache", "littlecalc", "rowfile", "spans", "taskorder", "tidytext")
    ],
)
def test_solutions_are_worth_one_and_nothing_is_worth_nothing(env, name):
    assert submitted(env, name, ROWS[name].patch) == 1.0
    assert submitted(env, name, "") == 0.0


def test_hidden_tests_are_not_to_be_found(env):
    row = ROWS[SOLVED]
    observation, _ = env.reset(options={"instance_id": SOLVED})
    assert observation["output"] == row.problem_statement
    machine = "-path /proc -o -path /usr -o -path /dev"  # of which test_attacks.py looks at more
    found = env.step(
        f"find / \\( {machine} \\) -prune -o -type f -exec grep -l 'n > 10, 5, 7' {{}} +"
    )
    assert not found[0]["timed_out"]
    assert found[0]["output"] == ""
    assert env.step("python3 -m unittest")[0]["returncode"] == 0


def test_breaking_a_test_that_passes_is_worth_nothing(env):
    row = ROWS["sandboxgym__spans-3"]
    broken = "sed -i 's/def gaps/def gone/' spans/sets.py"
    env.reset(options={"instance_id": row.instance_id})
    env.step(f"git apply - <<'END'\n{row.patch}END")
    env.step(broken)
    assert env.step({"submit": True})[1] == 0.0


def test_the_agent_solves_a_task(env):
    outcome = solve(env, SOLVED)
    assert outcome.reward == 1.0
    assert outcome.edit.file == "littlecalc/evaluator.py"
    assert outcome.steps <= 50


def test_the_agent_submits_nothing_where_it_finds_nothing(env):
    outcome = solve(env, "sandboxgym__keepcache-3", tries=2)
    assert (outcome.reward, outcome.edit) == (0.0, None)


def test_an_edit_that_fails_is_undone(env):
    observation, _ = env.reset(options={"instance_id": SOLVED})
    agent = Agent(env, observation["output"])
    _, wrong = agent.study()[:2]
    assert not agent.attempt(wrong)
    assert agent.run("git status --porcelain") == ("", 0)


def test_branches_at_the_edit_are_independent(env):
    observation, _ = env.reset(options={"instance_id": SOLVED})
    agent = Agent(env, observation["output"])
    right, wrong = agent.study()[:2]
    twins = sg.fork(env, 2)
    try:
        results = [Agent(twins[0], "").attempt(wrong), Agent(twins[1], "").attempt(right)]
        assert results == [False, True]
        assert [Agent(twin, "").submit() for twin in twins] == [0.0, 1.0]
    finally:
        for twin in twins:
            twin.close()
    assert agent.run("git status --porcelain") == ("", 0)


def test_tasks_of_an_own_repository_are_graded(env, tmp_path):
    copy_package("spans", tmp_path / "spans")
    commit_anew(tmp_path / "spans")
    row = row_of(next(tasks_of_repository(tmp_path / "spans", seed=1)))
    backend = env.unwrapped._backend
    own = gym.make("sandboxgym/SWEBench-v0", rows=[row], repos=tmp_path, backend=backend)
    try:
        own.reset()
        assert own.step({"submit": True})[1] == 0.0
        own.reset()
        own.step(f"git apply - <<'END'\n{row.patch}END")
        assert own.step({"submit": True})[1] == 1.0
    finally:
        own.close()
