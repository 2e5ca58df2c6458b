"""The same choices for Python, the command line and pytest."""

from __future__ import annotations

import pytest

from sandboxgym.conformance import OptionError, Options, PolicyNotFoundError, check_forkable
from sandboxgym.conformance.checks import CHECKS
from tests.mutants.correct import Ferry
from tests.mutants.restoring import ForgetsTheFuel


def numbers(options):
    return [check.number for check in options.checks()]


def test_only_runs_a_check_and_all_that_it_builds_on():
    assert numbers(Options(only=["06"])) == ["00", "01", "04", "06"]
    assert [r.number for r in check_forkable(Ferry, only=["06"]).results] == numbers(
        Options(only=["06"])
    )


@pytest.mark.parametrize("name", ["06", "6", 6, "restored-continues-exactly"])
def test_a_check_goes_by_number_and_by_name(name):
    assert Options(only=[name]) == Options(only=["06-restored-continues-exactly"])


def test_all_checks_are_run_where_none_is_chosen():
    assert numbers(Options()) == [check.number for check in CHECKS]


def test_a_skipped_check_is_reported_as_not_run_and_what_builds_on_it_runs():
    report = check_forkable(Ferry, only=["06"], skip=["04"])
    assert [(r.number, r.status) for r in report.results] == [
        ("00", "passed"),
        ("01", "passed"),
        ("04", "not run"),
        ("06", "passed"),
    ]
    assert report.results[2].message == "skipped, as asked for"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"seeds": []}, "at least one seed"),
        ({"seeds": [-1]}, "integers from 0 on"),
        ({"seeds": ["1"]}, "integers from 0 on"),
        ({"depth": 0}, "at least 1"),
        ({"depth": 2.5}, "at least 1"),
        ({"time_budget": 0}, "time_budget is a number above 0"),
        ({"memory_budget": float("nan")}, "memory_budget is a number above 0"),
        ({"call_timeout": -1}, "call_timeout is a number above 0"),
        ({"only": ["77"]}, "there are 00 to"),
        ({"only": ["restored-continue"]}, "did you mean 'restored-continues-exactly'"),
        ({"only": []}, "no check is left"),
        ({"only": ["06"], "skip": ["06"]}, "no check is left"),
        ({"skip": ["00"]}, "records the episodes"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_run(wrong, reason):
    with pytest.raises(OptionError, match=reason):
        check_forkable(Ferry, **wrong)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("random", "not of the form"),
        ("tests.nowhere:policy", "No module named"),
        ("tests.mutants.correct:nothing", "has no attribute"),
        ("tests.mutants.correct:GOODS", "is a tuple, not a function"),
    ],
)
def test_a_policy_that_does_not_exist_is_refused(name, reason):
    with pytest.raises(PolicyNotFoundError, match=reason):
        check_forkable(Ferry, policy=name)


def always_load(obs, info, space, rng):
    return 2


def test_a_policy_goes_by_name_too():
    name = "tests.conformance.test_options:always_load"
    report = check_forkable(ForgetsTheFuel, policy=name, only=["06"])
    assert report.failures[0].actions == [2, 2]
