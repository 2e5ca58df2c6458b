"""A failure comes with what shows it again: pasted as it stands, it fails in the same way."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest

import sandboxgym as sg
from sandboxgym.conformance import check_forkable
from sandboxgym.conformance.options import Options
from sandboxgym.conformance.report import CheckResult
from sandboxgym.conformance.reproduce import reproduction
from sandboxgym.conformance.source import Source
from tests.mutants.correct import Ferry
from tests.mutants.isolation import SharesAListOfTheClass
from tests.mutants.restoring import ForgetsTheFuel


class FailsWithOneSeed(Ferry):
    """Only the episodes of seed 2 show the fault."""

    def reset(self, *, seed=None, options=None):
        self.unlucky = seed == 2
        return super().reset(seed=seed)

    def get_state(self):
        return {**super().get_state(), "unlucky": self.unlucky}

    def set_state(self, state):
        super().set_state(state)
        self.unlucky = state["unlucky"]
        self.fuel -= self.unlucky


def third(obs, info, space, rng):
    return 2


def first_failure(make, **options):
    return check_forkable(make, **options).failures[0]


def same(failure, other):
    """Whether two failures are of the same episode, at the same leaf."""
    keys = ("name", "message", "path", "expected", "found", "seed", "actions")
    return all(failure[key] == other[key] for key in keys)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (ForgetsTheFuel, {}),
        (SharesAListOfTheClass, {"depth": 7}),
        (FailsWithOneSeed, {"policy": "tests.conformance.test_reproduce:third"}),
        (FailsWithOneSeed, {"kwargs": {"fuel": 9}, "policy": third}),
    ],
)
def test_the_command_shows_the_failure_again(make, options, tmp_path):
    report = check_forkable(make, skip=["24", "27"], **options)
    failure = report.failures[0]
    program, *arguments = shlex.split(failure.reproduce)
    assert program == "sandboxgym"
    file = tmp_path / "again.json"
    run = subprocess.run(
        [sys.executable, "-m", "sandboxgym", *arguments, "--json", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stderr
    [again] = [r for r in json.loads(file.read_text())["results"] if r["status"] == "failed"]
    [before] = [r for r in report.as_dict()["results"] if r["name"] == failure.name]
    assert same(before, again)


def test_what_a_new_process_cannot_find_is_reproduced_in_python(capsys):
    def make_env():
        return ForgetsTheFuel()

    failure = first_failure(make_env, depth=5)
    exec(failure.reproduce, {"make_env": make_env})
    again = capsys.readouterr().out
    assert "FAIL  06-restored-continues-exactly" in again
    assert f"seed 0, actions {[int(a) for a in failure.actions]}" in again


def test_so_is_an_id_that_was_registered_by_hand(capsys):
    sg.register("tests/ForgetfulFerry-v0", ForgetsTheFuel)
    failure = first_failure("tests/ForgetfulFerry-v0")
    assert "check_forkable('tests/ForgetfulFerry-v0', only=['06']" in failure.reproduce
    exec(failure.reproduce, {})
    assert "FAIL  06-restored-continues-exactly" in capsys.readouterr().out


def test_arguments_survive_the_command_line():
    kwargs = {"text": "it's 1", "number": 1, "list": [1, 2.5, None], "flag": True}
    source = Source.of("tests.mutants.correct:Ferry", kwargs)
    failure = CheckResult("06-x", "", "failed", seed=1)
    words = shlex.split(reproduction(source, Options(depth=3), failure))
    assert words[:3] == ["sandboxgym", "check", "tests.mutants.correct:Ferry"]
    given = words[words.index("--kwargs") + 1 : words.index("--only")]
    assert {k: json.loads(v) for k, v in (word.split("=", 1) for word in given)} == kwargs
    assert words[-4:] == ["--seed", "1", "--depth", "3"]


def test_arguments_that_json_does_not_have_are_said_in_python():
    source = Source.of("tests.mutants.correct:Ferry", {"size": (1, 2)})
    text = reproduction(source, Options(), CheckResult("06-x", "", "failed", seed=1))
    assert "kwargs={'size': (1, 2)}" in text
