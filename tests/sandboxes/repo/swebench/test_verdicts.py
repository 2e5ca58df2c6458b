from __future__ import annotations

import ast
import json
import re
from importlib import resources
from pathlib import Path

import pytest

from sandboxgym.sandboxes.repo.swebench.parsers.pytest_logs import parse_pytest
from sandboxgym.sandboxes.repo.swebench.plan import Runner
from sandboxgym.sandboxes.repo.swebench.status import Status
from sandboxgym.sandboxes.repo.swebench.verdicts import VerdictError, read
from tests.sandboxes.repo.swebench.running import (
    QUIET_PYTEST,
    plan,
    run,
    verdicts,
    with_pytest,
    with_unittest,
    write,
)

PYTEST_CASES = """\
import unittest
import pytest


def test_passes(): pass
def test_fails(): assert 1 == 2
def test_raises(): raise KeyError("x")
@pytest.mark.skip(reason="no network")
def test_skipped(): pass
@pytest.mark.xfail(reason="known")
def test_expected(): assert False
@pytest.mark.xfail
def test_unexpected(): pass
@pytest.mark.xfail(strict=True)
def test_strict(): pass
@pytest.mark.parametrize("value", ["a b", "[x]", "é - PASSED", "/usr/lib"])
def test_many(value): pass
@pytest.fixture
def broken(): raise OSError("gone")
def test_setup(broken): pass
@pytest.fixture
def leaves():
    yield
    raise OSError("late")
def test_teardown(leaves): pass


class TestCase(unittest.TestCase):
    def test_good(self): pass
    def test_bad(self): self.fail()
"""

UNITTEST_CASES = '''\
import unittest


class Case(unittest.TestCase):
    def test_passes(self): pass
    def test_fails(self): self.assertEqual(1, 2)
    def test_raises(self): raise KeyError("x")
    @unittest.skip("no network")
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass
    def test_described(self):
        """What it shows is this.

        And more."""
    def test_subtests(self):
        for i in range(3):
            with self.subTest(i=i): self.assertNotEqual(i, 1)
    def id(self): return "any.name"


class NotSetUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError("gone")
    def test_never_run(self): pass
'''


def test_pytest_reports_every_kind_of_end_by_the_whole_name(tmp_path: Path) -> None:
    found = with_pytest(tmp_path, {"test_kinds.py": PYTEST_CASES})

    assert found.trusted
    assert found.finished
    assert found.faults == ()
    assert found.results == {
        f"test_kinds.py::{name}": Status[status]
        for name, status in {
            "test_passes": "PASSED",
            "test_fails": "FAILED",
            "test_raises": "FAILED",
            "test_skipped": "SKIPPED",
            "test_expected": "XFAIL",
            "test_unexpected": "XPASS",
            "test_strict": "FAILED",
            "test_many[a b]": "PASSED",
            "test_many[[x]]": "PASSED",
            "test_many[\\xe9 - PASSED]": "PASSED",
            "test_many[/usr/lib]": "PASSED",
            "test_setup": "ERROR",
            "test_teardown": "ERROR",
            "TestCase::test_good": "PASSED",
            "TestCase::test_bad": "FAILED",
        }.items()
    }


def test_unittest_reports_every_kind_of_end(tmp_path: Path) -> None:
    found = with_unittest(tmp_path, {"test_kinds.py": UNITTEST_CASES}, "test_kinds")

    assert found.finished
    assert found.faults == ()
    assert found.results == {
        "test_passes (test_kinds.Case)": Status.PASSED,
        "test_fails (test_kinds.Case)": Status.FAILED,
        "test_raises (test_kinds.Case)": Status.ERROR,
        "test_skipped (test_kinds.Case)": Status.SKIPPED,
        "test_expected (test_kinds.Case)": Status.XFAIL,
        "test_unexpected (test_kinds.Case)": Status.XPASS,
        "test_described (test_kinds.Case)": Status.PASSED,
        "What it shows is this.": Status.PASSED,
        "test_subtests (test_kinds.Case)": Status.FAILED,
    }


def test_a_script_that_runs_unittest_itself_is_heard(tmp_path: Path) -> None:
    runner = "import unittest\nunittest.main('test_kinds', argv=['runtests.py', '-v'])\n"
    write(tmp_path, {"test_kinds.py": UNITTEST_CASES, "tests/runtests.py": runner})

    found = verdicts(
        tmp_path, plan(Runner.UNITTEST, "tests/runtests.py", environment={"PYTHONPATH": "."})
    )

    assert found.results["test_passes (test_kinds.Case)"] is Status.PASSED
    assert found.results["test_fails (test_kinds.Case)"] is Status.FAILED


def test_the_python_path_of_a_plan_is_that_of_the_tests_and_their_processes(tmp_path: Path) -> None:
    test = (
        "import subprocess, sys\nimport inside\n"
        "def test_path():\n"
        "    subprocess.run([sys.executable, '-c', 'import inside'], check=True)\n"
    )
    write(tmp_path, {"src/inside.py": "", "tests/test_path.py": test})

    found = verdicts(
        tmp_path,
        plan(Runner.PYTEST, *QUIET_PYTEST, "tests", environment={"PYTHONPATH": "src"}),
    )

    assert found.results == {"tests/test_path.py::test_path": Status.PASSED}


def test_other_commands_are_read_from_their_log_and_not_trusted(tmp_path: Path) -> None:
    found = verdicts(tmp_path, plan(Runner.OTHER, "echo", "PASSED test_a.py::test_one"))

    assert not found.trusted
    assert found.finished


def test_the_log_is_kept_and_its_end_is_what_is_kept_of_a_long_one(tmp_path: Path) -> None:
    long = "def test_long():\n    for _ in range(100): print('x' * 100_000)\n    print('THE END')\n"

    found = with_pytest(tmp_path, {"test_long.py": long}, "-s")

    assert found.results == {"test_long.py::test_long": Status.PASSED}
    assert "THE END" in found.log
    assert len(found.log) <= 4 * 2**20


def test_a_test_process_that_is_killed_leaves_what_it_had_reported(tmp_path: Path) -> None:
    killed = "import os\ndef test_a(): pass\ndef test_b(): os.kill(os.getpid(), 9)\n"

    found = with_pytest(tmp_path, {"test_k.py": killed})

    assert found.results == {"test_k.py::test_a": Status.PASSED}
    assert not found.finished


def test_a_process_that_outlives_the_tests_does_not_hold_up_the_results(tmp_path: Path) -> None:
    leaves = (
        "import subprocess, os\n"
        "def test_a(): subprocess.Popen(['sleep', '600'])\n"
        "def test_b():\n"
        "    if os.fork() == 0:\n"
        "        import time; time.sleep(600)\n"
    )

    found = with_pytest(tmp_path, {"test_l.py": leaves}, "-s")

    assert set(found.results.values()) == {Status.PASSED}
    assert found.finished


def test_a_python_that_does_not_exist_gives_no_verdicts_and_the_reason(tmp_path: Path) -> None:
    job, _ = run(tmp_path, plan(Runner.PYTEST))

    with pytest.raises(VerdictError, match="no-such-python: command not found"):
        read(job, plan(Runner.PYTEST), "bash: no-such-python: command not found", parse_pytest)


def test_results_are_not_believed_with_another_key_or_when_changed(tmp_path: Path) -> None:
    write(tmp_path, {"test_one.py": "def test_one(): pass\n"})
    what = plan(Runner.PYTEST, *QUIET_PYTEST)
    job, output = run(tmp_path, what)
    other, _ = run(tmp_path, what)

    assert read(job, what, output, parse_pytest).results
    with pytest.raises(VerdictError):
        read(other, what, output, parse_pytest)
    mark, packed, code = output.split()
    changed = packed[:40] + ("A" if packed[40] != "A" else "B") + packed[41:]
    with pytest.raises(VerdictError):
        read(job, what, f"{mark} {changed} {code}", parse_pytest)


def test_the_key_is_shown_by_no_repr(tmp_path: Path) -> None:
    job, _ = run(tmp_path, plan(Runner.OTHER, "true"))

    assert json.loads(job.stdin)["key"] not in repr(job)
    assert str(job.key) not in repr(job)
    assert job.key.hex() not in job.command


def test_programs_for_the_sandbox_are_within_python_3_5() -> None:
    folder = resources.files("sandboxgym.sandboxes.repo.swebench.reporters")
    programs = [file for file in folder.iterdir() if file.name.endswith(".py")]

    assert len(programs) >= 6
    for program in programs:
        text = program.read_text(encoding="utf-8")
        ast.parse(text, feature_version=(3, 5))
        assert not re.search(r"\bf[\"']", text), f"{program.name} has an f-string"


def test_a_command_names_its_folder_and_python_as_the_shell_takes_them(tmp_path: Path) -> None:
    spaced = tmp_path / "a folder's"
    write(spaced, {"test_one.py": "def test_one(): pass\n"})

    found = verdicts(spaced, plan(Runner.PYTEST, *QUIET_PYTEST))

    assert found.results == {"test_one.py::test_one": Status.PASSED}
