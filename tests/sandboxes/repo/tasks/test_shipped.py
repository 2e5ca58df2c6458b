"""The tasks that ship are what they say: the tests fail that should, the solution solves."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys

import pytest

from sandboxgym.core.errors import DataNotFoundError
from sandboxgym.sandboxes.repo.bases import git
from sandboxgym.sandboxes.repo.swebench.grading import grade
from sandboxgym.sandboxes.repo.swebench.plan import Runner, files_of, plan_of
from sandboxgym.sandboxes.repo.swebench.rows import row_of
from sandboxgym.sandboxes.repo.tasks import base_of_task, shipped_tasks
from sandboxgym.sandboxes.repo.tasks.build import STATEMENTS
from sandboxgym.sandboxes.repo.tasks.running import UNITTEST, run_tests
from sandboxgym.sandboxes.repo.tasks.shipped import PACKAGES, copy_package, packages

ROWS = shipped_tasks()
every_task = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.instance_id)


def tree_of(row, folder, *patches):
    """A package as the agent finds it, and further patches."""
    package = row.repo.partition("/")[2]
    tree = folder / package
    copy_package(package, tree)
    for patch in (row.base_patch, *patches):
        apply(tree, patch)
    return tree


def apply(tree, patch):
    git(tree, "apply", "-", stdin=patch, extra={"GIT_CEILING_DIRECTORIES": str(tree.parent)})


def blocks(row):
    """What the statement says that happens, and what should happen."""
    pattern = r"^(Actual|Expected):\n\n```python\n(.*?)^```$"
    return dict(re.findall(pattern, row.problem_statement, re.DOTALL | re.MULTILINE))


def holds(tree, example):
    """Whether Python says what an example says, in a tree."""
    (tree / "example.txt").write_text(example)
    command = [sys.executable, "-m", "doctest", "example.txt"]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=60)
    return done.returncode == 0


def test_there_are_thirty_of_six_packages():
    assert len(ROWS) == 30
    assert {row.repo.partition("/")[2] for row in ROWS} == set(packages())


def test_each_is_about_another_function():
    assert len({(row.repo, row.base_patch) for row in ROWS}) == len(ROWS)


@every_task
def test_exactly_the_tests_fail_that_are_to_pass(row, tmp_path):
    run = run_tests(tree_of(row, tmp_path, row.test_patch), UNITTEST, 60)
    report = grade(row, run.results)
    assert (report.fixed, report.broken) == ((), ())
    assert set(run.results) == {*row.fail_to_pass, *row.pass_to_pass}


@every_task
def test_the_solution_makes_the_package_whole(row, tmp_path):
    tree = tree_of(row, tmp_path, row.test_patch, row.patch)
    assert grade(row, run_tests(tree, UNITTEST, 60).results).resolved
    whole = PACKAGES / tree.name
    for path in whole.rglob("*.py"):
        assert (tree / path.relative_to(whole)).read_bytes() == path.read_bytes()


@every_task
def test_tests_that_the_agent_sees_pass(row, tmp_path):
    tree = tree_of(row, tmp_path)
    run = run_tests(tree, UNITTEST, 60)
    assert set(run.results) == set(row.pass_to_pass)
    assert not grade(row, run.results).broken


@every_task
def test_the_statement_is_true(row, tmp_path):
    examples = blocks(row)
    assert set(examples) == {"Actual", "Expected"}
    assert doctest.DocTestParser().get_examples(examples["Expected"])
    broken = tree_of(row, tmp_path)
    assert holds(broken, examples["Actual"])
    assert not holds(broken, examples["Expected"])
    apply(broken, row.patch)
    assert holds(broken, examples["Expected"])
    assert not holds(broken, examples["Actual"])


@every_task
def test_the_statement_does_not_leak_the_solution(row):
    told = {line.strip() for line in row.problem_statement.splitlines()} - {""}
    for patch in (row.patch, row.test_patch):
        changed = {line[1:].strip() for line in patch.splitlines() if line[:1] in "+-"}
        assert not told & changed
    assert not any(name in row.problem_statement for name in files_of(row.patch))
    assert not any(test.split(" ")[0] in row.problem_statement for test in row.fail_to_pass)


@every_task
def test_statements_are_those_of_their_files(row):
    text = (STATEMENTS / f"{row.instance_id}.md").read_text(encoding="utf-8")
    assert row.problem_statement == text


@every_task
def test_the_grader_knows_how_to_run_it(row):
    plan = plan_of(row)
    assert plan.runner is Runner.UNITTEST
    assert plan.arguments == ("-m", "unittest", "-v")
    assert plan.preparation == ()
    assert all(name.startswith("tests/") for name in plan.files)


def test_the_base_has_the_fault_and_no_history(tmp_path):
    row = ROWS[0]
    base = base_of_task(row, cache=tmp_path / "cache")
    tree = base.root / "repo"
    package = PACKAGES / row.repo.partition("/")[2]
    changed = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if path.read_bytes() != (tree / path.relative_to(package)).read_bytes()
    }
    assert changed == {*files_of(row.patch), *files_of(row.test_patch)}
    assert git(tree, "log", "--format=%s").split() == ["base"]
    assert git(tree, "status", "--porcelain") == ""


def test_the_base_is_made_once(tmp_path):
    first = base_of_task(ROWS[0], cache=tmp_path)
    assert base_of_task(ROWS[0], cache=tmp_path).root == first.root
    assert base_of_task(ROWS[1], cache=tmp_path).root != first.root


def test_compiled_files_stay_behind(tmp_path):
    copy_package("spans", tmp_path / "spans")
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_row_of_another_repository_has_no_base_here(tmp_path):
    raw = {
        "instance_id": "us__calc-1",
        "repo": "us/calc",
        "base_commit": "",
        "problem_statement": "",
        "patch": "",
        "FAIL_TO_PASS": ["a"],
        "PASS_TO_PASS": [],
        "eval_script": "",
        "log_parser": "parse_log_unittest",
    }
    with pytest.raises(DataNotFoundError, match="us/calc, which does not ship"):
        base_of_task(row_of(raw), cache=tmp_path)
