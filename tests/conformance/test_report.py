from __future__ import annotations

import json
import os

import gymnasium as gym
import pytest

import sandboxgym as sg
from sandboxgym.conformance import ConformanceError, EnvironmentNotFoundError, check_forkable
from sandboxgym.core import forking
from sandboxgym.core.errors import UncapturedStateError
from tests.mutants.correct import Dictionary, Ferry
from tests.mutants.determinism import RaisesOnTheThirdStep
from tests.mutants.restoring import ForgetsTheFuel


def result(report, number):
    return next(r for r in report.results if r.number == number)


def test_a_failure_names_the_leaf_and_what_reproduces_it():
    failure = result(check_forkable(ForgetsTheFuel), "06")
    assert failure.path == "['obs'][0]"
    assert (failure.seed, len(failure.actions)) == (0, 2)
    snapshot_env, restored = ForgetsTheFuel(), ForgetsTheFuel()
    snapshot_env.reset(seed=failure.seed)
    snapshot_env.step(failure.actions[0])
    restored.reset(seed=5)
    restored.restore(snapshot_env.snapshot())
    original, other = (env.step(failure.actions[1])[0][0] for env in (snapshot_env, restored))
    assert repr(original) == failure.expected
    assert other != original


def test_checks_that_build_on_a_failed_one_are_not_run_and_say_so():
    report = check_forkable(ForgetsTheFuel)
    assert [r.number for r in report.failures] == ["06"]
    late = result(report, "25")
    assert late.status == "not run"
    assert late.message == "needs 06-restored-continues-exactly, which failed"
    assert late in report.not_run


def test_the_text_says_what_failed_why_it_matters_and_how_to_reproduce_it():
    text = str(check_forkable(ForgetsTheFuel))
    assert "FAIL  06-restored-continues-exactly" in text
    assert "why: A fork that goes another way" in text
    assert "seed 0, actions [1, 1]" in text
    assert "NOT OK: " in text
    assert "1 failed" in text


def test_json_has_everything():
    report = json.loads(check_forkable(ForgetsTheFuel).to_json())
    assert report["ok"] is False
    [failure] = [r for r in report["results"] if r["status"] == "failed"]
    assert failure["actions"] == [1, 1]
    assert report["env"] == "tests.mutants.restoring:ForgetsTheFuel"
    assert report["seeds"] == [0, 1, 2]


def test_raise_for_failures():
    check_forkable(Ferry, only=["06"]).raise_for_failures()
    with pytest.raises(ConformanceError, match="06-restored-continues-exactly"):
        check_forkable(ForgetsTheFuel, only=["06"]).raise_for_failures()


def test_what_an_environment_raises_is_a_failure_with_its_message():
    failure = result(check_forkable(RaisesOnTheThirdStep), "00")
    assert failure.status == "failed"
    assert failure.message == "RuntimeError: the engine stopped"
    assert "in step" in failure.traceback
    assert len(failure.actions) == 3


def broken_factory():
    raise OSError("no such house")


def test_a_factory_that_raises_is_a_failure_too():
    report = check_forkable(broken_factory)
    assert result(report, "00").message == "OSError: no such house"
    assert len(report.not_run) == len(report.results) - 1


class FailsToClose(Ferry):
    def close(self):
        raise OSError("the door is stuck")


def test_an_environment_that_cannot_be_closed_fails():
    assert "the door is stuck" in result(check_forkable(FailsToClose), "00").message


def test_what_is_not_forkable_is_refused_with_the_way_out():
    failure = result(check_forkable("gymnasium.envs.classic_control:CartPoleEnv"), "00")
    assert "sandboxgym.forkable(env)" in failure.message


def test_other_processes_are_not_started_for_a_factory_that_they_cannot_import():
    report = check_forkable(lambda: Ferry())
    assert report.ok
    for number in ("02", "09"):
        assert result(report, number).status == "not run"
    assert "cannot import" in result(report, "02").message


def test_a_gymnasium_id_with_a_class_as_entry_point_can_be_made_in_other_processes():
    sg.register("tests/Ferry-v0", Ferry, max_episode_steps=15)
    report = check_forkable("tests/Ferry-v0", kwargs={"fuel": 30}, skip=["24"])
    assert report.ok
    assert [r.number for r in report.not_run] == ["24", "26"]  # it makes no claim about threads


def test_a_report_of_checks_that_were_not_run_proves_nothing():
    report = check_forkable(Ferry, only=["06"], time_budget=1e-6, isolated=False)
    assert {r.status for r in report.results} == {"not run"}
    assert not report.ok
    assert "NOTHING PROVEN" in str(report)
    with pytest.raises(ConformanceError):
        report.raise_for_failures()


def test_a_gymnasium_environment_without_hooks_is_made_forkable():
    report = check_forkable("CartPole-v1", skip=["24", "27"])
    assert report.ok
    assert "native" in report.mechanism


class RefusesWhatWasLoaded(Ferry):
    """Its states have no meaning outside of the process that captured them, and it says so."""

    portable = False

    @property
    def fidelity(self):
        return sg.Fidelity(portable=self.portable)

    def get_state(self):
        return {**super().get_state(), "process": os.getpid()}

    def set_state(self, state):
        if state["process"] != os.getpid():
            raise UncapturedStateError("this state was captured in another process")
        super().set_state(state)


class BoastsOfBeingPortable(RefusesWhatWasLoaded):
    portable = True


def test_what_is_not_portable_may_refuse_in_another_process():
    report = check_forkable(RefusesWhatWasLoaded, only=["09"])
    assert report.ok
    assert "not portable, and says so when asked" in result(report, "09").message


def test_what_is_portable_may_not():
    failure = result(check_forkable(BoastsOfBeingPortable, only=["09"]), "09")
    assert failure.status == "failed"
    assert "captured in another process" in failure.message


def test_the_policy_chooses_the_actions():
    report = check_forkable(ForgetsTheFuel, policy=lambda obs, info, space, rng: 2)
    assert report.failures[0].actions == [2, 2]


def test_the_default_policy_takes_admissible_commands():
    assert check_forkable(Dictionary, seeds=[3], only=["06"]).ok


def test_nothing_depends_on_or_changes_global_randomness():
    import random

    import numpy as np

    random.seed(1)
    np.random.seed(1)
    before = (random.getstate(), np.random.get_state()[1].tolist())
    first = check_forkable(ForgetsTheFuel).failures[0]
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    random.seed(2)
    assert check_forkable(ForgetsTheFuel).failures[0].actions == first.actions


@pytest.mark.parametrize(
    "name", ["NoSuch-v0", "tests.nowhere:make", "tests.mutants.correct:Nothing"]
)
def test_an_unknown_name_is_refused(name):
    with pytest.raises(EnvironmentNotFoundError):
        check_forkable(name)


def outcome(report):
    return {r.number for r in report.results if r.status == "failed"}


def test_a_core_that_captures_without_copying_is_caught(monkeypatch):
    """No environment can do this by itself: the core copies what it captures."""
    monkeypatch.setattr(forking, "owned", lambda tree, where="": tree)
    assert outcome(check_forkable(Ferry)) == {"06", "21"}


def test_all_environments_are_closed():
    open_now = set()

    class Counted(Ferry):
        def __init__(self):
            super().__init__()
            open_now.add(id(self))
            keep.append(self)  # so that no two have the same id

        def close(self):
            assert id(self) in open_now, "closed twice"
            open_now.remove(id(self))

    keep: list[gym.Env] = []
    assert check_forkable(Counted, isolated=False, skip=["24"]).ok  # `keep` is a leak
    assert keep
    assert not open_now
