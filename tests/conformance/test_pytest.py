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
    run.stdout.fnmatch_lines(
        [
            "*06-restored-continues-exactly* FAILED*",
            "*seed 0, actions*",
            "*sandboxgym check *:TestMutant.make_env --only 06*",
        ]
    )


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
    options = ("--forkable", "tests.mutants.correct:Ferry", "--forkable-skip", "24", "-v")
    run = isolated.runpytest_inprocess(*PLUGIN, *options)
    run.assert_outcomes(passed=len(CHECKS) - 2, skipped=2)  # Ferry does not claim threads either
    run.stdout.fnmatch_lines(["tests.mutants.correct:Ferry::12-siblings-are-isolated PASSED*"])


def test_the_option_shows_failures_without_a_traceback(isolated):
    mutant = "tests.mutants.ownership:ReturnsItsOwnList"
    run = isolated.runpytest_inprocess(*PLUGIN, "--forkable", mutant, "--forkable-only", "20")
    run.assert_outcomes(failed=1, passed=run.parseoutcomes()["passed"])
    run.stdout.fnmatch_lines(["FAIL  20-observations-are-owned"])


def test_an_unknown_environment_is_a_usage_error(isolated):
    run = isolated.runpytest_inprocess(*PLUGIN, "--forkable", "NoSuch-v0")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["ERROR: --forkable: 'NoSuch-v0' is neither*"])


def test_without_the_option_nothing_changes(isolated):
    isolated.makepyfile("def test_one(): pass")
    isolated.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=1)


MUTANT = "tests.mutants.restoring:ForgetsTheFuel"
OPTIONS = ("--forkable-only", "6", "--forkable-depth", "5", "--forkable-seed", "4")


def test_the_options_reach_the_suite(isolated):
    run = isolated.runpytest_inprocess(*PLUGIN, "--forkable", MUTANT, *OPTIONS)
    run.assert_outcomes(failed=1, passed=3)
    run.stdout.fnmatch_lines(["*sandboxgym check*--only 06 --seed 4 --depth 5"])


def test_they_can_stand_in_the_configuration_file(isolated):
    isolated.makeini(
        """
        [pytest]
        forkable_only = 06 03
        forkable_skip = 03
        forkable_seeds = 1
        forkable_depth = 5
        forkable_policy = tests.conformance.test_options:always_load
        """
    )
    run = isolated.runpytest_inprocess(*PLUGIN, "--forkable", MUTANT)
    run.assert_outcomes(failed=1, passed=3, skipped=1)
    run.stdout.fnmatch_lines(["*seed 0, actions [[]2, 2]", "*--policy tests.conformance.test_opt*"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--forkable-only", "no-leak"], "did you mean 'no-leaks'"),
        (["--forkable-depth", "deep"], "--forkable-depth: invalid literal"),
        (["--forkable-seeds", "2", "--forkable-seed", "1"], "not both"),
        (["--forkable-policy", "nowhere:policy"], "No module named 'nowhere'"),
        (["--forkable-time-budget", "-1"], "above 0"),
    ],
)
def test_wrong_options_are_usage_errors(isolated, options, reason):
    run = isolated.runpytest_inprocess(*PLUGIN, "--forkable", MUTANT, *options)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines([f"ERROR: *{reason}*"])


def test_the_contract_takes_the_options_as_attributes(isolated):
    isolated.makepyfile(
        """
        from sandboxgym.conformance import ForkableContract
        from tests.mutants.correct import Ferry

        class TestFerry(ForkableContract):
            only = ["03"]
            seeds = (1, 2)
            time_budget = 300

            def make_env(self):
                return Ferry()
        """
    )
    isolated.runpytest_inprocess().assert_outcomes(passed=3, skipped=len(CHECKS) - 3)
