from __future__ import annotations

from pathlib import Path

import pytest

from sandboxgym.sandboxes.repo.swebench.grading import as_swebench, grade, reward
from sandboxgym.sandboxes.repo.swebench.names import known_as
from sandboxgym.sandboxes.repo.swebench.rows import Row, read_rows, row_of
from sandboxgym.sandboxes.repo.swebench.status import Results, Status
from tests.sandboxes.repo.swebench.test_rows import RAW


def _row(to_fix: list[str], to_keep: list[str]) -> Row:
    return row_of({**RAW, "FAIL_TO_PASS": to_fix, "PASS_TO_PASS": to_keep})


def _results(**statuses: str) -> Results:
    return {name: Status[status] for name, status in statuses.items()}


@pytest.mark.parametrize(
    ("status", "fixed", "kept"),
    [
        ("PASSED", True, True),
        ("XFAIL", True, True),
        ("SKIPPED", False, True),
        ("XPASS", False, False),
        ("FAILED", False, False),
        ("ERROR", False, False),
        (None, False, False),
    ],
)
def test_each_status_counts_as_it_should(status: str | None, fixed: bool, kept: bool) -> None:
    row = _row(["a"], ["b"])
    given = {} if status is None else _results(a=status)
    assert grade(row, {**given, "b": Status.PASSED}).resolved is fixed
    given = {} if status is None else _results(b=status)
    assert grade(row, {**given, "a": Status.PASSED}).resolved is kept


def test_the_reward_is_one_only_if_all_is_fixed_and_nothing_broken() -> None:
    row = _row(["a", "b"], ["c"])
    half = grade(row, _results(a="PASSED", b="FAILED", c="PASSED"))
    broken = grade(row, _results(a="PASSED", b="PASSED", c="FAILED"))
    full = grade(row, _results(a="PASSED", b="PASSED", c="PASSED"))

    assert [reward(report) for report in (half, broken, full)] == [0.0, 0.0, 1.0]
    assert [reward(report, dense=True) for report in (half, broken, full)] == [0.5, 0.0, 1.0]
    assert half.fixed == ("a",)
    assert half.not_fixed == ("b",)
    assert broken.broken == ("c",)


def test_nothing_heard_is_nothing_fixed() -> None:
    report = grade(_row(["a"], []), {})

    assert not report.resolved
    assert reward(report, dense=True) == 0.0


def test_a_cut_name_stands_for_all_tests_that_it_may_be_of() -> None:
    row = _row(["t.py::test[a"], [])

    def resolved(**statuses: str) -> bool:
        names = {"x": "t.py::test[a b]", "y": "t.py::test[a c]", "z": "t.py::test[ab]"}
        return grade(row, {names[key]: Status[value] for key, value in statuses.items()}).resolved

    assert resolved(x="PASSED", y="PASSED", z="FAILED")
    assert not resolved(x="PASSED", y="FAILED")
    assert not resolved(z="PASSED")


@pytest.mark.parametrize(
    ("whole", "known"),
    [
        ("t.py::test[/usr/lib/x]", "t.py::test[/x]"),
        ("t.py::test[MouseButton.LEFT]", "t.py::test[1]"),
        ("a/test_b.py::test_c", "test_c"),
        ("test_a (m.Case.test_a)", "test_a (m.Case)"),
        ("t.py::test[a - b]", "t.py::test[a"),
        ("t.py::test[//host/a]", "t.py::test[//host/a]"),
    ],
)
def test_names_of_rows_are_found_by_whole_names(whole: str, known: str) -> None:
    assert known in known_as(whole)
    assert grade(_row([known], []), {whole: Status.PASSED}).resolved


def test_a_test_is_not_found_by_another_ones_name() -> None:
    row = _row(["t.py::test_a"], [])

    for other in ("t.py::test_ab", "u.py::test_a", "t.py::T::test_a", "t.py::test_a[x]"):
        assert not grade(row, {other: Status.PASSED}).resolved


def test_pieces_of_logs_among_the_names_of_a_row_are_no_tests() -> None:
    report = grade(_row(["t.py::test"], ["[100%]"]), {"t.py::test": Status.PASSED})

    assert report.resolved
    assert report.kept == ()


def test_every_row_of_verified_is_solved_by_its_own_names_and_by_no_fewer(
    shared_data: Path,
) -> None:
    for row in read_rows(shared_data / "swebench" / "verified.jsonl.gz"):
        results = dict.fromkeys((*row.fail_to_pass, *row.pass_to_pass), Status.PASSED)
        assert grade(row, results).resolved, row.instance_id
        for name in (row.fail_to_pass[0], row.fail_to_pass[-1]):
            assert not grade(row, {**results, name: Status.FAILED}).resolved
            del results[name]
            assert not grade(row, results).resolved
            results[name] = Status.PASSED


def test_the_report_has_the_form_of_swebench() -> None:
    report = grade(_row(["a"], ["b"]), _results(a="PASSED"))

    entry = as_swebench(report)["owner__thing-7"]
    assert entry["resolved"] is False
    assert entry["tests_status"]["FAIL_TO_PASS"] == {"success": ["a"], "failure": []}
    assert entry["tests_status"]["PASS_TO_PASS"] == {"success": [], "failure": ["b"]}
