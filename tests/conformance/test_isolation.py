"""What an environment does to its process ends in a report, never in a hang or a crash."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandboxgym.conformance import check_forkable, processes
from tests.conformance import hostile
from tests.mutants.correct import Ferry

PATIENCE = 3.0


def check(make, **options):
    return check_forkable(make, call_timeout=PATIENCE, only=["04"], **options)


def failure_of(report):
    return report.failures[0]


@pytest.mark.parametrize(
    "make", [hostile.Loops, hostile.WaitsInC, hostile.DefiesSignals], ids=lambda make: make.__name__
)
def test_a_step_that_never_returns_is_a_failure_with_the_actions(make):
    failure = failure_of(check(make, seeds=[3]))
    assert failure.number == "00"
    assert "step(" in failure.message
    assert f"did not return within {PATIENCE:g} s" in failure.message
    assert (failure.seed, len(failure.actions)) == (3, 3)


def test_a_hang_shows_where_it_is():
    trace = failure_of(check(hostile.WaitsInC)).traceback
    assert "in trouble" in trace
    assert "conformance/bench.py" not in trace


@pytest.mark.parametrize(
    ("make", "call"),
    [
        (hostile.HangsInReset, "reset(seed=1)"),
        (hostile.HangsInClose, "close"),
        (hostile.HangsWhenMade, "making the environment"),
    ],
)
def test_so_is_another_call(make, call):
    assert failure_of(check(make)).message.startswith(f"{call} did not return")


def test_what_comes_after_a_hang_runs_in_a_new_process():
    report = check_forkable(hostile.HangsInRestore, call_timeout=PATIENCE, only=["05", "03"])
    outcomes = {result.number: result.status for result in report.results}
    assert outcomes == {"00": "passed", "01": "passed", "03": "passed", "04": "passed"} | {
        "05": "failed"
    }


def test_a_policy_that_hangs_is_named():
    report = check(Ferry, policy=hostile.never_decides)
    assert failure_of(report).message.startswith("the policy did not return")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (hostile.Exits, "SystemExit: 3"),
        (hostile.ExitsHard, "ended with exit status 7"),
        (hostile.Crashes, "was killed by SIGSEGV"),
        (hostile.LeavesChildrenWhenItDies, "ended with exit status 1"),
    ],
)
def test_the_end_of_its_process_is_a_failure_with_the_actions(make, message):
    failure = failure_of(check(make))
    assert message in failure.message
    assert (failure.seed, len(failure.actions)) == (0, 3)


def test_a_crash_shows_the_stack_and_what_was_printed():
    failure = failure_of(check(hostile.Crashes))
    assert "in trouble" in failure.traceback
    assert failure.output == "the last words\n"


def test_no_process_is_left_and_no_descriptor():
    files = len(list(Path("/proc/self/fd").iterdir()))
    check(hostile.LeavesChildrenWhenItDies)
    assert processes.descendants(os.getpid()) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == files


def test_closing_all_descriptors_is_a_failure():
    assert failure_of(check(hostile.ClosesAllFiles)).seed == 0


def test_printing_a_lot_disturbs_nothing(capfd):
    assert check(hostile.Talks).ok
    assert capfd.readouterr() == ("", "")


def test_a_folder_that_is_gone_disturbs_nothing():
    assert check_forkable(hostile.LivesInAFolderThatIsGone, only=["02", "10"]).ok


def test_a_copy_of_the_process_does_not_run_the_suite_a_second_time():
    report = check(hostile.GoesOnInACopyOfItsProcess)
    assert [result.number for result in report.results] == ["00", "01", "04"]
    assert report.ok


def test_what_the_environment_changes_here_stays_there():
    before = Path.cwd()
    check(hostile.LivesInAFolderThatIsGone)
    assert Path.cwd() == before
    assert hostile.GoesOnInACopyOfItsProcess.forked is False


def test_what_is_made_has_to_be_an_environment():
    failure = failure_of(check(hostile.makes_no_environment))
    assert "returned a dict, which is no gymnasium.Env" in failure.message


def test_a_check_over_the_memory_budget_is_not_run():
    report = check_forkable(hostile.TakesMemory, memory_budget=600, only=["05"])
    late = report.results[-1]
    assert (late.number, late.status) == ("05", "not run")
    assert "the memory budget is 600 MB" in late.message


def test_a_check_at_work_when_the_time_is_up_is_not_run():
    report = check_forkable(hostile.HangsInRestore, time_budget=3, only=["05", "06"])
    late = {result.number: result for result in report.results}
    assert "stopped after" in late["05"].message
    assert late["06"].message == "the time budget of 3 s is up"
    assert report.ok


def test_without_isolation_the_time_budget_still_starts_no_check_too_late():
    report = check_forkable(Ferry, time_budget=1e-9, isolated=False)
    assert {result.status for result in report.results} == {"not run"}


def test_everything_ends_with_the_caller(tmp_path):
    """Also when it is killed, which leaves it no time to clean up."""
    program = (
        "import sys; from sandboxgym.conformance import check_forkable\n"
        "from tests.conformance.hostile import DefiesSignals\n"
        "check_forkable(DefiesSignals)"
    )
    marker = f"SANDBOXGYM_TEST_MARKER={tmp_path}"
    name, _, value = marker.partition("=")
    caller = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, name: value})
    try:
        assert wait_for(lambda: len(marked(marker)) == 3), "supervisor and bench did not start"
    finally:
        caller.kill()
        caller.wait()
    assert wait_for(lambda: not marked(marker)), f"left behind: {marked(marker)}"


def marked(marker):
    """Processes whose environment has the marker."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False
