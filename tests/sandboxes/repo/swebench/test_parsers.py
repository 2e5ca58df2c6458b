"""Our parsers on what real runners print, and on lines that were hard for somebody once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxgym.sandboxes.repo.swebench.names import looked_up
from sandboxgym.sandboxes.repo.swebench.parsers import PARSERS
from sandboxgym.sandboxes.repo.swebench.parsers.pytest_logs import parse_pytest
from sandboxgym.sandboxes.repo.swebench.parsers.sympy_logs import parse_sympy
from sandboxgym.sandboxes.repo.swebench.parsers.unittest_logs import parse_unittest
from sandboxgym.sandboxes.repo.swebench.rows import read_rows
from sandboxgym.sandboxes.repo.swebench.status import Status, worst
from tests.sandboxes.repo.swebench.running import Runner, plan, verdicts, write
from tests.sandboxes.repo.swebench.test_verdicts import PYTEST_CASES, UNITTEST_CASES

HEADING = "=========================== short test summary info ============================"


@pytest.mark.parametrize("options", [(), ("-v",), ("-vv", "--color=yes"), ("-q", "--tb=no")])
def test_the_log_of_pytest_says_what_the_reporter_says(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    write(tmp_path, {"test_kinds.py": PYTEST_CASES})

    found = verdicts(tmp_path, plan(Runner.PYTEST, "-rA", "-p", "no:cacheprovider", *options))

    expected = dict(found.results)
    if not any(option.startswith("-v") for option in options):
        del expected["test_kinds.py::test_skipped"]  # The summary alone does not name it.
    # Of a test that passed and could not be cleaned up, both are said.
    assert parse_pytest(found.log) == expected


def test_the_log_of_unittest_says_what_the_reporter_says(tmp_path: Path) -> None:
    cases = UNITTEST_CASES.replace('    def id(self): return "any.name"\n', "")
    write(tmp_path, {"test_kinds.py": cases})
    what = plan(Runner.UNITTEST, "-m", "unittest", "-v", "test_kinds")
    found = verdicts(tmp_path, what)

    parsed = parse_unittest(found.log)

    if sys.version_info >= (3, 11):  # There, a name has its method twice.
        parsed = {name.replace(f".{name.split(' ')[0]})", ")"): s for name, s in parsed.items()}
    parsed.pop("setUpClass (test_kinds.NotSetUp)", None)
    assert parsed == found.results


def test_pytest_that_cannot_collect_says_so(tmp_path: Path) -> None:
    write(tmp_path, {"test_a.py": "import nothing_of_this_name\n", "test_b.py": "1/0\n"})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert parse_pytest(done.stdout) == {"test_a.py": Status.ERROR, "test_b.py": Status.ERROR}


@pytest.mark.parametrize(
    ("line", "name", "status"),
    [
        ("PASSED a/b.py::test", "a/b.py::test", "PASSED"),
        ("PASSED a.py::T::test[a b]", "a.py::T::test[a b]", "PASSED"),
        ("PASSED a.py::test[[x]-y]", "a.py::test[[x]-y]", "PASSED"),
        ("FAILED a.py::test[a b] - assert [1] == [2]", "a.py::test[a b]", "FAILED"),
        ("FAILED a.py::test - E - F", "a.py::test", "FAILED"),
        ("ERROR a.py - ImportError: x", "a.py", "ERROR"),
        ("ERROR a.py", "a.py", "ERROR"),
        ("XFAIL a.py::test", "a.py::test", "XFAIL"),
        ("XFAIL a.py::test - reason", "a.py::test", "XFAIL"),
        ("XPASS a.py::test reason", "", ""),
        ("SKIPPED [1] a.py:3: no network", "", ""),
        ("PASSED [100%]", "", ""),
        ("PASSED [ 50%]", "", ""),
        ("ERROR    root:x.py:3 logged", "", ""),
        ("PASSEDa.py::test", "", ""),
        ("FAILED", "", ""),
        ("\x1b[32mPASSED\x1b[0m a.py::\x1b[1mtest\x1b[0m", "a.py::test", "PASSED"),
    ],
)
def test_a_line_of_the_summary_of_pytest(line: str, name: str, status: str) -> None:
    expected = {name: Status[status]} if name else {}

    assert parse_pytest(f"{HEADING}\n{line}\n==== 1 passed in 0.1s ====\n") == expected


@pytest.mark.parametrize(
    ("line", "name", "status"),
    [
        ("a.py::test PASSED", "a.py::test", "PASSED"),
        ("a.py::test PASSED                  [ 50%]", "a.py::test", "PASSED"),
        ("a.py::test[a b] SKIPPED (no network) [ 50%]", "a.py::test[a b]", "SKIPPED"),
        ("a.py::test FAILED [3/7]", "a.py::test", "FAILED"),
    ],
)
def test_a_line_of_the_progress_of_pytest(line: str, name: str, status: str) -> None:
    assert parse_pytest(line) == {name: Status[status]}


def test_printed_lines_before_the_summary_do_not_pass_anything() -> None:
    log = f"PASSED a.py::test\na.py::test PASSED [100%]\n{HEADING}\nFAILED a.py::other - x\n"

    assert parse_pytest(log) == {"a.py::other": Status.FAILED}


def test_a_forged_summary_before_the_real_one_does_not_count() -> None:
    log = f"{HEADING}\nPASSED a.py::test\n{HEADING}\nFAILED a.py::test - x\n"

    assert parse_pytest(log) == {"a.py::test": Status.FAILED}


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("test_a (m.C) ... ok", {"test_a (m.C)": "PASSED"}),
        ("test_a (m.C.test_a) ... ok", {"test_a (m.C.test_a)": "PASSED"}),
        ("test_a (m.C) ... printed\nmore\nok", {"test_a (m.C)": "PASSED"}),
        ("test_a (m.C) ... printed\nokay\nFAIL", {"test_a (m.C)": "FAILED"}),
        (
            "test_a (m.C)\nWhat it does. ... ok",
            {"What it does.": "PASSED", "test_a (m.C)": "PASSED"},
        ),
        ("test_a (m.C) ... skipped 'why ... ok'", {"test_a (m.C)": "SKIPPED"}),
        ('test_a (m.C) ... skipped "it\'s"', {"test_a (m.C)": "SKIPPED"}),
        ("test_a (m.C) ... expected failure", {"test_a (m.C)": "XFAIL"}),
        ("test_a (m.C) ... unexpected success", {"test_a (m.C)": "XPASS"}),
        ("Applying x.0002_y...test_a (m.C) ... ok", {"test_a (m.C)": "PASSED"}),
        ("FAIL: test_a (m.C) (i=1)\n" + "-" * 70, {"test_a (m.C)": "FAILED"}),
        ("ERROR: test_a (m.C)\nWhat.\n", {"test_a (m.C)": "ERROR", "What.": "ERROR"}),
        ("test_a (m.C) ... test_b (m.C) ... ok", {"test_a (m.C)": None, "test_b (m.C)": "PASSED"}),
        ("ok\nfine ... maybe", {}),
        ("With f(..., x=1), it is ... ok", {"With f(..., x=1), it is": "PASSED"}),
        ("test_a (m.C) ... ok\nFAIL: test_a (m.C) [sub]", {"test_a (m.C)": "FAILED"}),
    ],
)
def test_lines_of_unittest(log: str, expected: dict[str, str | None]) -> None:
    known = {name: Status[status] for name, status in expected.items() if status}

    parsed = parse_unittest(log)

    assert {name: parsed[name] for name in known} == known
    assert not [name for name, status in expected.items() if status is None and name in parsed]


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("test_a ok", "PASSED"),
        ("test_a ok                                     [OK]", "PASSED"),
        ("test_a F                                    [FAIL]", "FAILED"),
        ("test_a E", "ERROR"),
        ("test_a f", "XFAIL"),
        ("test_a X", "XPASS"),
        ("test_a  - s", "SKIPPED"),
        ("test_a no gmpy2 here s", "SKIPPED"),
        ("test_a Slow w", "SKIPPED"),
        ("test_a T", "ERROR"),
    ],
)
def test_a_line_of_sympy(line: str, status: str) -> None:
    log = f"sympy/core/tests/test_x.py[1] \n{line}\n"

    assert parse_sympy(log) == {"test_a": Status[status]}


def test_of_sympys_tests_with_the_same_name_the_worst_counts() -> None:
    assert parse_sympy("test_a F\ntest_a ok\n") == {"test_a": Status.FAILED}


@pytest.mark.parametrize("parser", sorted(PARSERS))
@pytest.mark.parametrize(
    "part",
    ["\n", "PASSED ", "[", " ... ", "a", "::a", "a.py::b[", "test_a (m.C) ", "test_a f ", "\x1b]"],
)
def test_no_log_takes_long(parser: str, part: str) -> None:
    """Where a pattern had to try everything, this would not end."""
    repeated = part * (200_000 // len(part))
    for log in (
        repeated,
        f"{HEADING}\n{repeated}",
        f"PASSED a.py::{repeated} x",
        f"test_a {repeated}!",
    ):
        assert len(PARSERS[parser](log)) <= 2


def test_every_parser_that_verified_names_is_here(shared_data: Path) -> None:
    rows = read_rows(shared_data / "swebench" / "verified.jsonl.gz")

    assert len({row.log_parser for row in rows}) == 12


PARAMETERS = st.text(
    st.characters(exclude_categories=("C", "Z"), include_characters=" "), min_size=1, max_size=20
).filter(lambda text: "] - " not in f"{text}]" and "]" not in text and text == text.strip())
TESTS = st.from_regex(
    r"[a-z_]{1,8}/test_[a-z]{1,8}\.py(::T[a-z]{0,5})?::test_\w{0,8}", fullmatch=True
)
STATUSES = st.sampled_from([Status.PASSED, Status.FAILED, Status.ERROR, Status.XFAIL])


@given(tests=st.dictionaries(st.tuples(TESTS, st.none() | PARAMETERS), STATUSES, max_size=8))
def test_any_summary_of_pytest_is_read_as_it_was_written(
    tests: dict[tuple[str, str | None], Status],
) -> None:
    named = {
        test if parameter is None else f"{test}[{parameter}]": status
        for (test, parameter), status in tests.items()
    }
    reasons = {Status.FAILED: " - why [not] - x"}
    lines = [
        f"\x1b[31m{status.value}\x1b[0m {name}{reasons.get(status, '')}"
        for name, status in named.items()
    ]

    results = parse_pytest("\n".join(["PASSED a.py::forged", HEADING, *lines, "== 1 passed =="]))

    assert results == named
    cut = {name: name.split()[0] for name in named}
    for name, status in looked_up(cut.values(), results).items():
        of_this_name = [named[whole] for whole, short in cut.items() if short == name]
        assert status == (named[name] if name in named else worst(of_this_name))


@given(st.text(max_size=300), st.sampled_from(sorted(PARSERS)))
def test_any_text_can_be_parsed(log: str, parser: str) -> None:
    assert all(isinstance(status, Status) for status in PARSERS[parser](log).values())
