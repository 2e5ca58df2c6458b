"""Every check catches the mutants that are meant for it, and nothing else complains."""

from __future__ import annotations

import importlib
import pkgutil
import tempfile

import pytest

from sandboxgym.conformance import check_forkable
from sandboxgym.conformance.checks import CHECKS
from tests import mutants
from tests.mutants import MUTANTS
from tests.mutants.correct import CORRECT, Ferry, ThreadedFerry

for module in pkgutil.iter_modules(mutants.__path__):
    importlib.import_module(f"tests.mutants.{module.name}")


# They start interpreters or run for long. Where they are not the point, they come apart.
COSTLY = {"02", "09", "24", "27"}


def outcome(report, *statuses):
    return {r.number for r in report.results if r.status in statuses}


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path, monkeypatch):
    """Some mutants leave files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


# One for each check. The others come apart, with all checks.
FIRST = list({mutant.caught_by: mutant for mutant in reversed(MUTANTS)}.values())


@pytest.mark.parametrize("mutant", FIRST, ids=lambda m: f"{m.caught_by}-{m.name}")
def test_a_mutant_is_caught_by_the_check_meant_for_it(mutant):
    skipped = COSTLY - {mutant.caught_by}
    report = check_forkable(mutant.make, skip=skipped)
    expected = ({mutant.caught_by} | mutant.also) - skipped
    assert outcome(report, "failed", "warned") == expected, report


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.caught_by}-{m.name}")
def test_no_other_check_complains_about_a_mutant(mutant):
    report = check_forkable(mutant.make)
    assert outcome(report, "failed", "warned") == {mutant.caught_by} | mutant.also, report


@pytest.mark.parametrize("make", CORRECT[:4], ids=lambda make: make.__name__)
def test_nothing_complains_about_a_correct_environment(make):
    skipped = COSTLY if make is not Ferry else set()
    report = check_forkable(make, skip=skipped)
    expected = {check.number for check in CHECKS} - skipped
    not_run = set() if make is ThreadedFerry else {"26"}
    assert outcome(report, "passed") == expected - not_run, report


@pytest.mark.slow
@pytest.mark.parametrize("make", CORRECT, ids=lambda make: make.__name__)
def test_a_correct_environment_passes_everything(make):
    report = check_forkable(make)
    not_run = set() if make is ThreadedFerry else {"26"}
    assert outcome(report, "not run") == not_run, report
    assert outcome(report, "passed") == {check.number for check in CHECKS} - not_run, report


@pytest.mark.slow
def test_alfworld_with_real_games_passes_everything(alfworld_games):
    kwargs = {"source": "real", "split": "valid_seen", "games_dir": str(alfworld_games.parent)}
    report = check_forkable("sandboxgym/ALFWorld-v0", kwargs=kwargs, seeds=[0], depth=8)
    assert outcome(report, "passed") == {check.number for check in CHECKS} - {"26"}, report


def test_every_check_that_can_fail_has_a_mutant():
    caught = {mutant.caught_by for mutant in MUTANTS}
    core_mutants, reports_only = {"21"}, {"25"}
    assert caught | core_mutants | reports_only == {check.number for check in CHECKS}
