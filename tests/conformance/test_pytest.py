"""The contract as a test class, and the option of the plugin."""

from __future__ import annotations

import pytest

from sandboxgym.conformance import ForkableContract
from sandboxgym.conformance.checks import CHECKS
from tests.mutants.correct import Ferry

pytest_plugins = ["pytester"]
PLUGIN = ("-p", "sandboxgym.conformance.pytest_plugin", "-p", "no:cacheprovider")


class TestFerry(ForkableContract):
    seeds = (4,)

    def make_env(self):
        return Ferry(fuel=9)


@pytest.fixture
def isolated(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester


def test_the_contract_is_one_test_a_check(isolated):
    isolated.makepyfile(
        """
        from sandboxgym.conformance import ForkableContract
        from tests.mutants.restoring import ForgetsTheFuel

        class TestMutant(ForkableContract):
            seeds = (0,)

            def make_env(self):
                return ForgetsTheFuel()
        """
    )
    run = isolated.runpytest_inprocess("-v")
    run.assert_outcomes(failed=1, passed=8, skipped=len(CHECKS) - 9)
    run.stdout.fnmatch_lines(["*06-restored-continues-exactly* FAILED*", "*reproduce: seed 0*"])


def test_the_contract_wants_make_env(isolated):
    isolated.makepyfile(
        """
        from sandboxgym.conformance import ForkableContract

        class TestNothing(ForkableContract):
            pass
        """
    )
    run = isolated.runpytest_inprocess()
    run.stdout.fnmatch_lines(["*NotImplementedError: TestNothing has to define make_env*"])


def test_the_option_adds_the_checks_of_an_environment(isolated):
    run = isolated.runpytest_inprocess(*PLUGIN, "--forkable", "tests.mutants.correct:Ferry", "-v")
    run.assert_outcomes(passed=len(CHECKS))
    run.stdout.fnmatch_lines(["tests.mutants.correct:Ferry::12-siblings-are-isolated PASSED*"])


def test_the_option_shows_failures_without_a_traceback(isolated):
    mutant = "tests.mutants.ownership:ReturnsItsOwnList"
    run = isolated.runpytest_inprocess(*PLUGIN, "--forkable", mutant)
    run.assert_outcomes(failed=1, passed=len(CHECKS) - 1)
    run.stdout.fnmatch_lines(["FAIL  20-observations-are-owned"])


def test_an_unknown_environment_is_a_usage_error(isolated):
    run = isolated.runpytest_inprocess(*PLUGIN, "--forkable", "NoSuch-v0")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["ERROR: --forkable: 'NoSuch-v0' is neither*"])


def test_without_the_option_nothing_changes(isolated):
    isolated.makepyfile("def test_one(): pass")
    isolated.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=1)
