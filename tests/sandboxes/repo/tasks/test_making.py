"""Tasks are made from a user's repository, by the library and by the command."""

from __future__ import annotations

import json
import subprocess

import pytest

from sandboxgym.cli import main
from sandboxgym.core.errors import DataNotFoundError
from sandboxgym.sandboxes.repo.bases import check_out_orphan, commit_anew, git
from sandboxgym.sandboxes.repo.swebench.grading import grade
from sandboxgym.sandboxes.repo.swebench.plan import Runner, plan_of
from sandboxgym.sandboxes.repo.swebench.rows import read_rows, row_of
from sandboxgym.sandboxes.repo.tasks.making import MakingError
from sandboxgym.sandboxes.repo.tasks.repositories import tasks_of_repository
from sandboxgym.sandboxes.repo.tasks.running import PYTEST, UNITTEST, run_tests
from sandboxgym.sandboxes.repo.tasks.shipped import copy_package

CODE = '''\
def clamp(value, low, high):
    """A value, or the limit that it is beyond."""
    if value < low:
        return low
    if value > high:
        return high
    return value


def count_down(number):
    while number > 0:
        number -= 1
    return number
'''
TESTS = """\
from limits import clamp, count_down


def test_inside():
    assert clamp(3, 1, 5) == 3


def test_below():
    assert clamp(0, 1, 5) == 1


def test_above():
    assert clamp(9, 1, 5) == 5


def test_count_down():
    assert count_down(3) == 0


def test_nothing_to_count():
    assert count_down(-1) == -1
"""


@pytest.fixture
def repository(tmp_path):
    """A repository with tests for unittest."""
    copy_package("taskorder", tmp_path / "taskorder")
    commit_anew(tmp_path / "taskorder")
    return tmp_path / "taskorder"


def repository_of(tmp_path, code=CODE, tests=TESTS):
    tree = tmp_path / "limits"
    (tree / "src").mkdir(parents=True)
    (tree / "src/limits.py").write_text(code)
    (tree / "test_limits.py").write_text(tests)
    commit_anew(tree)
    return tree


def checked(row, repository, tmp_path, framework):
    """Whether a row does what rows do: its tests fail, its solution makes them pass."""
    broken = tmp_path / f"broken-{row.instance_id}"
    check_out_orphan(repository, row.base_commit, broken, row.base_patch)
    git(broken, "apply", "-", stdin=row.test_patch)
    before = grade(row, run_tests(broken, framework, 60).results)
    git(broken, "apply", "-", stdin=row.patch)
    after = grade(row, run_tests(broken, framework, 60).results)
    return before.fixed == () and before.broken == () and after.resolved


def test_rows_of_a_repository_with_unittest(repository, tmp_path):
    rows = [row_of(raw) for raw in tasks_of_repository(repository, seed=3, limit=2)]
    assert [row.instance_id for row in rows] == ["local__taskorder-1", "local__taskorder-2"]
    assert all(checked(row, repository, tmp_path, UNITTEST) for row in rows)


def test_rows_of_a_repository_with_pytest(tmp_path):
    repository = repository_of(tmp_path)
    rows = [row_of(raw) for raw in tasks_of_repository(repository, seed=1, limit=1)]
    assert len(rows) == 1
    for row in rows:
        assert checked(row, repository, tmp_path, PYTEST)
        plan = plan_of(row)
        assert plan.runner is Runner.PYTEST
        assert plan.environment["PYTHONPATH"] == "src"
        assert row.setup.pins[0].startswith("pytest==")


def test_the_seed_decides(repository):
    def first(seed):
        return next(tasks_of_repository(repository, seed=seed))["patch"]

    assert first(1) == first(1)
    assert len({first(seed) for seed in (1, 2, 3)}) > 1


def test_the_repository_stays_as_it_is(repository):
    before = git(repository, "status", "--porcelain", "--ignored")
    list(tasks_of_repository(repository, limit=1))
    assert git(repository, "status", "--porcelain", "--ignored") == before


def test_the_statement_has_symptoms_and_no_solution(repository):
    row = next(tasks_of_repository(repository, seed=3))
    assert row["FAIL_TO_PASS"][0] in row["problem_statement"]
    changed = {line[1:].strip() for line in row["patch"].splitlines() if line[:1] in "+-"}
    assert not changed & {line.strip() for line in row["problem_statement"].splitlines()} - {""}


def test_mistakes_after_which_tests_do_not_end_are_left_out(tmp_path, monkeypatch):
    from sandboxgym.sandboxes.repo.tasks import making

    monkeypatch.setattr(making, "LEAST_SECONDS", 1.0)
    monkeypatch.setattr(making, "TIMES_LONGER", 0.0)
    monkeypatch.setattr(making, "TRIES", 50)
    code = "def count_down(number):\n    while number > 0:\n        number -= 1\n    return 0\n"
    tests = (
        "import unittest\nfrom limits import count_down\n\n\nclass T(unittest.TestCase):\n"
        "    def test_a(self):\n        self.assertEqual(count_down(2), 0)\n\n"
        "    def test_b(self):\n        self.assertEqual(count_down(0), 0)\n"
    )
    repository = repository_of(tmp_path, code, tests)
    for row in tasks_of_repository(repository):
        assert "number += 1" not in row["base_patch"]


def test_flaky_tests_are_nobodys(tmp_path):
    flag = tmp_path / "flag"
    tests = (
        "import os, unittest\nfrom limits import clamp\n\n\nclass T(unittest.TestCase):\n"
        "    def test_a(self):\n        self.assertEqual(clamp(0, 1, 5), 1)\n\n"
        "    def test_b(self):\n        pass\n\n"
        f"    def test_flaky(self):\n        if os.path.exists({str(flag)!r}):\n"
        f"            self.skipTest('now')\n        open({str(flag)!r}, 'w').close()\n"
    )
    rows = list(tasks_of_repository(repository_of(tmp_path, tests=tests), seed=1))
    assert rows
    for row in rows:
        assert not any("flaky" in name for name in row["FAIL_TO_PASS"] + row["PASS_TO_PASS"])


def test_no_folder(tmp_path):
    with pytest.raises(DataNotFoundError, match="is no folder"):
        next(tasks_of_repository(tmp_path / "nowhere"))


def test_no_such_python(repository):
    with pytest.raises(DataNotFoundError, match="there is no program"):
        next(tasks_of_repository(repository, python="/no/python"))


def test_no_repository(tmp_path):
    with pytest.raises(MakingError, match="is no git repository"):
        next(tasks_of_repository(tmp_path))


def test_no_commit(tmp_path):
    git(tmp_path, "init", "--quiet")
    with pytest.raises(MakingError, match="has no commit yet"):
        next(tasks_of_repository(tmp_path))


def test_no_tests(tmp_path):
    (tmp_path / "code.py").write_text(CODE)
    commit_anew(tmp_path)
    with pytest.raises(MakingError, match="no tests"):
        next(tasks_of_repository(tmp_path))


def test_failing_tests(tmp_path):
    repository = repository_of(tmp_path, tests=TESTS + "\n\ndef test_wrong():\n    assert 1 == 2\n")
    with pytest.raises(MakingError, match=r"1 of 6 tests fail .*test_wrong"):
        next(tasks_of_repository(repository))


def test_tests_that_do_not_end(tmp_path):
    repository = repository_of(tmp_path, tests="import time\ntime.sleep(60)\n")
    with pytest.raises(MakingError, match="did not end within 2 seconds"):
        next(tasks_of_repository(repository, seconds=2))


def test_command_writes_rows(repository, tmp_path, capsys):
    out = tmp_path / "rows.jsonl"
    command = ["tasks", "mutate", str(repository), "--out", str(out), "--seed", "3", "--limit", "1"]
    assert main(command) == 0
    assert [row.instance_id for row in read_rows(out)] == ["local__taskorder-1"]
    assert f"1 tasks in {out}" in capsys.readouterr().out


def test_command_says_what_is_wrong(tmp_path, capsys):
    assert main(["tasks", "mutate", str(tmp_path), "--out", str(tmp_path / "rows.jsonl")]) == 2
    assert "is no git repository" in capsys.readouterr().err
    assert main(["tasks", "mutate", str(tmp_path), "--out", str(tmp_path / "rows.csv")]) == 2
    assert "rows.csv.jsonl" in capsys.readouterr().err
    assert (
        main(["tasks", "mutate", str(tmp_path / "x"), "--out", str(tmp_path / "rows.jsonl")]) == 2
    )
    assert "error: " + str(tmp_path / "x") + " is no folder" in capsys.readouterr().err
    assert not (tmp_path / "rows.jsonl").exists()


def test_tests_that_notice_nothing_make_no_tasks(tmp_path, capsys):
    tests = (
        "import unittest\nimport limits\n\n\nclass T(unittest.TestCase):\n"
        "    def test_a(self):\n        pass\n\n    def test_b(self):\n        pass\n"
    )
    repository, out = repository_of(tmp_path, tests=tests), tmp_path / "rows.jsonl"
    assert main(["tasks", "mutate", str(repository), "--out", str(out)]) == 2
    assert "there is no mistake that at least one" in capsys.readouterr().err
    assert not out.exists()


def test_command_lists_and_shows(capsys):
    assert main(["tasks", "list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 30
    assert main(["tasks", "list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 30
    assert main(["tasks", "show", "sandboxgym__spans-1"]) == 0
    told = capsys.readouterr().out
    assert "free_slots()" in told
    assert "diff --git" not in told
    assert main(["tasks", "show", "sandboxgym__spans-1", "--solution"]) == 0
    assert "diff --git" in capsys.readouterr().out
    assert main(["tasks", "show", "nothing"]) == 2
    assert "tasks list" in capsys.readouterr().err


def test_ended_tests_leave_no_process(tmp_path):
    (tmp_path / "test_a.py").write_text(
        "import os, subprocess, sys, time, unittest\n\n\nclass T(unittest.TestCase):\n"
        "    def test_a(self):\n        child = subprocess.Popen([sys.executable, '-c', "
        "'import time; time.sleep(100)'])\n        open('pid', 'w').write(str(child.pid))\n"
        "        time.sleep(100)\n"
    )
    run = run_tests(tmp_path, UNITTEST, 3)
    assert not run.ended
    pid = int((tmp_path / "pid").read_text())
    status = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    assert status.stdout.strip()[:1] in ("", "Z")
