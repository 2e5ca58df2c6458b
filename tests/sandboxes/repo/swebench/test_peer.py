"""Our parsers and grades against those of `swebench` 5, on the same logs.

Where they deliberately differ, a test here says how: lines that only code under test can have
printed do not count for us, the worst of several statuses counts and not the last, and a name that
was cut stands for all tests that it may be of.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandboxgym.sandboxes.repo.swebench.grading import grade
from sandboxgym.sandboxes.repo.swebench.names import is_test, looked_up
from sandboxgym.sandboxes.repo.swebench.parsers import PARSERS
from sandboxgym.sandboxes.repo.swebench.parsers.pytest_logs import parse_pytest
from sandboxgym.sandboxes.repo.swebench.parsers.unittest_logs import parse_unittest
from sandboxgym.sandboxes.repo.swebench.rows import Row, read_rows
from sandboxgym.sandboxes.repo.swebench.status import Results, Status
from tests.sandboxes.repo.swebench.running import Runner, plan, verdicts, write
from tests.sandboxes.repo.swebench.test_parsers import HEADING
from tests.sandboxes.repo.swebench.test_verdicts import PYTEST_CASES, UNITTEST_CASES

pytestmark = pytest.mark.peers
PYTHON = "SANDBOXGYM_SWEBENCH_PYTHON"


@pytest.fixture(scope="module")
def peer_python() -> str:
    if PYTHON in os.environ:
        return os.environ[PYTHON]
    if importlib.util.find_spec("swebench") is None:
        pytest.skip(f"swebench 5 is not installed; {PYTHON} may name a Python that has it")
    return sys.executable


def _question(parser: str, log: str, row: Row | None = None) -> dict[str, Any]:
    to_fix = [] if row is None else list(row.fail_to_pass)
    to_keep = [] if row is None else list(row.pass_to_pass)
    return {"parser": parser, "log": log, "fail_to_pass": to_fix, "pass_to_pass": to_keep}


def _ask(python: str, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    script = Path(__file__).with_name("peer_swebench.py")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, str(script)],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert isinstance(answers, list)
    return answers


def _log_of(row: Row, statuses: Results) -> str:
    """What the row's runner prints where tests end like this."""
    if row.log_parser == "parse_log_django":
        words = {"PASSED": "ok", "FAILED": "FAIL", "ERROR": "ERROR", "SKIPPED": "skipped 'no'"}
        return "\n".join(f"{name} ... {words[s.value]}" for name, s in statuses.items())
    if row.log_parser == "parse_log_sympy":
        words = {"PASSED": "ok", "FAILED": "F", "ERROR": "E", "SKIPPED": "no s"}
        return "\n".join(f"{name} {words[s.value]}" for name, s in statuses.items())
    lines = [HEADING]
    for name, status in statuses.items():
        whole = f"{name} and more]" if name.count("[") > name.count("]") else name
        reason = " - because" if status is Status.FAILED else ""
        lines.append(f"{status.value} {whole}{reason}")
    return "\n".join(lines)


def test_reports_on_all_rows_of_verified_are_the_same(peer_python: str, shared_data: Path) -> None:
    draw = random.Random(7)
    rows = read_rows(shared_data / "swebench" / "verified.jsonl.gz")
    logs: list[str] = []
    all_skipped: list[set[str]] = []
    some = [Status.PASSED, Status.FAILED, Status.ERROR, Status.SKIPPED]
    for at, row in enumerate(rows):
        names = [name for name in (*row.fail_to_pass, *row.pass_to_pass) if is_test(name)]
        weights = ((1, 0, 0, 0), (97, 1, 1, 1), (25, 25, 25, 25))[at % 3]
        statuses = {name: draw.choices(some, weights)[0] for name in names}
        logs.append(_log_of(row, statuses))
        all_skipped.append({name for name in names if statuses[name] is Status.SKIPPED})

    asked = [_question(row.log_parser, log, row) for row, log in zip(rows, logs, strict=True)]
    answers = _ask(peer_python, asked)

    solved = 0
    for at, row in enumerate(rows):
        ours = grade(row, PARSERS[row.log_parser](logs[at]))
        theirs = answers[at]["report"]
        assert set(ours.fixed) == set(theirs["FAIL_TO_PASS"]["success"]), row.instance_id
        if all(is_test(name) for name in row.pass_to_pass):
            kept = set(theirs["PASS_TO_PASS"]["success"])
            if row.log_parser in ("parse_log_sympy", "parse_log_seaborn"):
                kept |= all_skipped[at] & set(row.pass_to_pass)  # These do not read it.
            differ = set(ours.kept) ^ kept
            if at % 3:  # For theirs, a cut name is also that of tests with a longer first word.
                differ = {name for name in differ if name.count("[") <= name.count("]")}
            assert not differ, row.instance_id
            assert ours.resolved or not answers[at]["resolved"], row.instance_id
        solved += ours.resolved
    assert solved >= len(rows) // 3


def test_real_logs_of_pytest_are_read_the_same(peer_python: str, tmp_path: Path) -> None:
    """By the names that theirs finds; ours are whole and may be more."""
    write(tmp_path, {"test_kinds.py": PYTEST_CASES})
    options = ("-rA", "-p", "no:cacheprovider")
    logs = [verdicts(tmp_path, plan(Runner.PYTEST, *options, *v)).log for v in ((), ("-v",))]
    parsers = ["pytest", "requests", "scikit", "matplotlib"]
    questions = [_question(f"parse_log_{parser}", log) for log in logs for parser in parsers]

    for question, answer in zip(questions, _ask(peer_python, questions), strict=True):
        theirs = {
            name: status
            for name, status in answer["statuses"].items()
            # Theirs takes other lines for tests, and (as scikit) reasons for a part of a name.
            if "::" in name and not (question["parser"] == "parse_log_scikit" and _has_reason(name))
        }
        assert len(theirs) >= 9
        ours = looked_up(theirs, parse_pytest(question["log"]))
        assert {name: status and status.value for name, status in ours.items()} == theirs


def _has_reason(name: str) -> bool:
    return any(test in name for test in ("::test_teardown", "::test_setup", "::test_expected"))


def test_real_logs_of_unittest_are_read_the_same(peer_python: str, tmp_path: Path) -> None:
    cases = UNITTEST_CASES.replace('    def id(self): return "any.name"\n', "")
    write(tmp_path, {"test_kinds.py": cases})
    what = plan(Runner.UNITTEST, "-m", "unittest", "-v", "test_kinds")
    log = verdicts(tmp_path, what).log

    theirs = _ask(peer_python, [_question("parse_log_django", log)])[0]["statuses"]

    ours = parse_unittest(log)
    whole = {name: status for name, status in theirs.items() if " (" in name or "." in name}
    assert len(whole) >= 6
    for name, status in whole.items():
        if " (i=" not in name:  # Parts of a test are not tests for us.
            assert ours[name].value == status, name


def test_summaries_that_were_drawn_are_read_the_same(peer_python: str) -> None:
    draw = random.Random(11)
    logs = [_drawn_summary(draw) for _ in range(300)]
    parsers = ["parse_log_pytest", "parse_log_requests", "parse_log_matplotlib"]
    questions = [_question(parser, log) for log in logs for parser in parsers]

    for question, answer in zip(questions, _ask(peer_python, questions), strict=True):
        found = looked_up(answer["statuses"], parse_pytest(question["log"]))
        ours = {name: None if status is None else status.value for name, status in found.items()}
        assert ours == answer["statuses"], question["log"]


def _drawn_summary(draw: random.Random) -> str:
    """Lines in the order in which pytest writes them, so that a worse status comes later."""
    parameters = ["", "[a]", "[a b]", "[x-[1]]", "[/usr/lib/a]", "[//h/a]", "[é]", "[a - b]", "[]"]
    lines = [HEADING]
    for status in ("PASSED", "XFAIL", "ERROR", "FAILED"):
        for number in range(draw.randrange(4)):
            test = f"tests/test_{status.lower()}.py::T::test_{number}{draw.choice(parameters)}"
            reasons = ["", " - assert 1 == 2", " - E: [x] - y"] if status == "FAILED" else [""]
            lines.append(f"{status} {test}{draw.choice(reasons)}")
    return "\n".join([*lines, "=== 3 passed in 0.12s ==="])


DIFFERENCES: dict[str, tuple[str, str, dict[str, str], dict[str, str]]] = {
    "printed before the summary": (
        "pytest",
        f"PASSED t.py::test\n{HEADING}\nFAILED t.py::other - x",
        {"t.py::test": "PASSED", "t.py::other": "FAILED"},
        {"t.py::other": "FAILED"},
    ),
    "said twice": (
        "pytest",
        f"{HEADING}\nFAILED t.py::test - x\nPASSED t.py::test",
        {"t.py::test": "PASSED"},
        {"t.py::test": "FAILED"},
    ),
    "progress": ("pytest", "PASSED [100%]", {"[100%]": "PASSED"}, {}),
    "logged": ("pytest", "ERROR    root:x.py:3 text", {"root:x.py:3": "ERROR"}, {}),
    "a reason taken for a part of the name": (
        "scikit",
        f"{HEADING}\nPASSED t.py::test\nERROR t.py::test - x",
        {"t.py::test": "PASSED", "t.py::test - x": "ERROR"},
        {"t.py::test": "ERROR"},
    ),
    "a printed line that begins with ok": (
        "django",
        "test_a (m.C) ... printed\nokay then",
        {"test_a (m.C)": "PASSED"},
        {},
    ),
    "last of its file, and expected to fail": (
        "sympy",
        "test_a ok                  [OK]\ntest_b f",
        {},
        {"test_a": "PASSED", "test_b": "XFAIL"},
    ),
}


def test_where_ours_differs_it_is_meant_to(peer_python: str) -> None:
    asked = [_question(f"parse_log_{parser}", log) for parser, log, *_ in DIFFERENCES.values()]
    answers = _ask(peer_python, asked)

    for (name, case), answer in zip(DIFFERENCES.items(), answers, strict=True):
        parser, log, theirs, ours = case
        assert answer["statuses"] == theirs, name
        parsed = PARSERS[f"parse_log_{parser}"](log)
        assert {test: status.value for test, status in parsed.items()} == ours, name
