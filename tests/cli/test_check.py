from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

import sandboxgym as sg
from sandboxgym.cli import main
from sandboxgym.conformance.checks import CHECKS

QUICK = ["--seeds", "1", "--depth", "4"]


def test_a_correct_environment_gives_zero_and_a_line_a_check(capsys):
    assert main(["check", "tests.mutants.correct:Ferry", *QUICK]) == 0
    out = capsys.readouterr().out
    assert all(check.name in out for check in CHECKS)
    assert f"ok: {len(CHECKS) - 1} passed, 0 failed, 1 not run" in out  # no claim about threads


def test_a_broken_environment_gives_one(capsys):
    assert main(["check", "tests.mutants.restoring:ForgetsTheFuel", *QUICK]) == 1
    assert "FAIL  06-restored-continues-exactly" in capsys.readouterr().out


def test_arguments_reach_the_environment(capsys):
    arguments = ["--kwargs", "source=synthetic", "num_games=3", "--kwargs", 'task_types=["heat"]']
    assert main(["check", "sandboxgym/ALFWorld-v0", *QUICK, *arguments]) == 2
    assert "heat" in capsys.readouterr().err
    assert main(["check", "tests.mutants.correct:Ferry", *QUICK, "--kwargs", "fuel=2"]) == 0
    assert "recorded 1 episodes of 2 steps" in capsys.readouterr().out


def test_json_goes_to_a_file_or_alone_to_standard_output(tmp_path, capsys):
    file = tmp_path / "report.json"
    assert main(["check", "tests.mutants.correct:Ferry", *QUICK, "--json", str(file)]) == 0
    assert json.loads(file.read_text())["ok"] is True
    capsys.readouterr()
    assert main(["check", "tests.mutants.correct:Ferry", *QUICK, "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["ok"] is True
    assert "12-siblings-are-isolated" in captured.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["NoSuch-v0"], "neither a registered Gymnasium id"),
        (["tests.nowhere:make"], "No module named 'tests.nowhere'"),
        (["tests.mutants.correct:Nothing"], "no attribute 'Nothing'"),
        (["tests.conformance.test_report:broken_factory"], "no such house"),
        (["tests.mutants.correct:Ferry", "--kwargs", "sails=2"], "unexpected keyword"),
        (
            ["tests.mutants.correct:Ferry", *QUICK, "--json", "/no/such/folder/x"],
            "cannot be written",
        ),
    ],
)
def test_what_cannot_be_used_gives_two_and_one_line(arguments, reason, capsys):
    assert main(["check", *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("sandboxgym: error: ")
    assert reason in lines[0]


@pytest.mark.parametrize("option", ["--json", "--junit"])
def test_a_report_that_has_nowhere_to_go_is_refused_before_the_first_check(
    option, tmp_path, capsys
):
    for target in (tmp_path, tmp_path / "nowhere" / "report"):
        assert main(["check", "tests.mutants.correct:Ferry", *QUICK, option, str(target)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "the report cannot be written" in captured.err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["check"],
        ["check", "x", "--seeds", "0"],
        ["check", "x", "--depth", "many"],
        ["check", "x", "--kwargs", "novalue"],
    ],
)
def test_wrong_usage_gives_two(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: sandboxgym" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.strip() == f"sandboxgym {sg.__version__}"


def test_checks_are_chosen_by_number_and_name(capsys):
    chosen = ["--only", "6", "no-leaks", "--skip", "14", "24"]
    assert main(["check", "tests.mutants.correct:Ferry", *QUICK, *chosen]) == 0
    out = capsys.readouterr().out
    assert "pass  06-restored-continues-exactly" in out
    assert "----  24-no-leaks" in out
    assert "25-latency" not in out


def test_junit_goes_to_a_file_or_alone_to_standard_output(tmp_path, capsys):
    file = tmp_path / "report.xml"
    few = [*QUICK, "--only", "03"]
    assert main(["check", "tests.mutants.correct:Ferry", *few, "--junit", str(file)]) == 0
    assert ET.parse(file).getroot().tag == "testsuites"
    capsys.readouterr()
    assert main(["check", "tests.mutants.correct:Ferry", *few, "--junit", "-"]) == 0
    assert ET.fromstring(capsys.readouterr().out).tag == "testsuites"


def test_what_an_environment_prints_is_not_in_the_report(capfd):
    few = [*QUICK, "--only", "03", "--json", "-"]
    assert main(["check", "tests.conformance.hostile:Talks", *few]) == 0
    assert json.loads(capfd.readouterr().out)["ok"] is True


def test_a_hang_is_a_failure_and_not_a_hang(capsys):
    arguments = ["tests.conformance.hostile:Loops", "--call-timeout", "2", "--seed", "5"]
    assert main(["check", *arguments, "--only", "00"]) == 1
    out = capsys.readouterr().out
    assert "did not return within 2 s" in out
    assert "seed 5, actions [" in out


def test_one_that_hangs_when_it_is_made_cannot_be_made(capsys):
    arguments = ["tests.conformance.hostile:HangsWhenMade", "--call-timeout", "2"]
    assert main(["check", *arguments]) == 2
    assert "making the environment did not return" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (["--only", "no-leak"], "did you mean 'no-leaks'"),
        (["--skip", "99"], "there is no check '99'"),
        (["--seeds", "2", "--seed", "1"], "not both"),
        (["--seed", "-1"], "from 0 on"),
        (["--time-budget", "0"], "above 0"),
        (["--memory-budget", "-1"], "above 0"),
        (["--policy", "nowhere:policy"], "No module named 'nowhere'"),
        (["--json", "-", "--junit", "-"], "only one"),
    ],
)
def test_options_that_make_no_sense_give_two_and_one_line(wrong, reason, capsys):
    assert main(["check", "tests.mutants.correct:Ferry", *wrong]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert reason in line
