"""The comparison of learning curves, around invented runs; once around the real training."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import tyro

from benchmarks import learning
from benchmarks.learning import compute_to, finished, write
from benchmarks.learning_plot import differences
from benchmarks.learning_study import METHODS, START_SEED, TUNING_SEED, Study
from benchmarks.learning_table import table
from benchmarks.learning_worlds import WORLDS
from sandboxgym_learners import jobs
from sandboxgym_learners.config import TrainConfig
from sandboxgym_learners.report.curves import Points
from sandboxgym_learners.report.load import load_run
from tests.learners.run_fixtures import make_run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path / "runs", ["short"], ["bpo", "rloo"], [1e-3, 1e-2], 3, 40000.0)


def invent(study: Study, method: str, rate: float, seed: int, **options) -> None:
    """Write a run as training would, with the place and budget that the study gives it."""
    job = study.job("short", method, rate, seed)
    algo = str(METHODS[method].settings["algo"])
    make_run(job.folder, algo, seed, config={"budget": job.budget}, **options)


def tune(study: Study) -> None:
    """Tuning runs in which bpo learns with the small rate and rloo with the large one."""
    for method, good in (("bpo", 1e-3), ("rloo", 1e-2)):
        for rate in study.rates_of("short", method):
            invent(study, method, rate, TUNING_SEED, skill=0.5 if rate == good else 0.0)


def test_each_method_gets_the_rate_that_it_learnt_best_with(study):
    tune(study)
    assert study.best_rate("short", "bpo") == 1e-3
    assert study.best_rate("short", "rloo") == 1e-2


def test_every_method_has_the_same_tuning_and_no_seed_of_the_comparison(study):
    runs = study.tuning()
    assert len(runs) == 4
    assert {job.seed for job in runs} == {TUNING_SEED}
    assert len({job.budget for job in runs}) == 1


def test_all_runs_in_a_world_start_from_one_policy_with_a_seed_of_its_own(study):
    tune(study)
    start = study.start("short")
    assert (start.seed, start.budget) == (START_SEED, 0)
    runs = [*study.tuning(), *(job for jobs in study.rounds() for job in jobs)]
    assert {job.settings["start"] for job in runs} == {str(start.folder / "start")}
    assert START_SEED not in {job.seed for job in runs}


def test_every_world_has_as_many_rates_for_every_method(tmp_path):
    study = Study(tmp_path, list(WORLDS), list(METHODS), None, 1, None)
    assert {len(study.rates_of(world, method)) for world in WORLDS for method in METHODS} == {3}


def test_rounds_train_one_seed_of_everything_with_the_best_rates(study):
    tune(study)
    rounds = list(study.rounds())
    assert [{job.seed for job in jobs} for jobs in rounds] == [{0}, {1}, {2}]
    assert [job.settings["learning.rate"] for job in rounds[0]] == [1e-3, 1e-2]


def test_seeds_that_one_method_lacks_are_not_compared(study):
    tune(study)
    for seed in (0, 1):
        invent(study, "bpo", 1e-3, seed)
    invent(study, "rloo", 1e-2, 1)
    invent(study, "rloo", 1e-2, 2, complete=False)
    groups = learning.compared(study, "short")
    assert {method: [run.seed for run in runs] for method, runs in groups.items()} == {
        "bpo": [1],
        "rloo": [1],
    }


def test_nothing_is_written_before_every_method_has_a_seed(study, tmp_path):
    tune(study)
    invent(study, "bpo", 1e-3, 0)
    assert not write(study, tmp_path / "results", "the command")
    assert not (tmp_path / "results").exists()


def test_methods_that_are_not_tuned_yet_are_left_out(study, tmp_path):
    tune(study)
    for seed in range(2):
        invent(study, "bpo", 1e-3, seed)
        invent(study, "rloo", 1e-2, seed)
    wide = Study(study.out, ["short", "long"], [*study.methods, "ppo"], study.rates, 2, 40000.0)
    assert write(wide, tmp_path / "results", "the command")
    found = json.loads((tmp_path / "results" / "learning.json").read_text())
    assert list(found["worlds"]) == ["short"]
    assert list(found["worlds"]["short"]["methods"]) == ["bpo", "rloo"]


def test_the_results_name_command_commit_machine_rates_and_every_method(study, tmp_path):
    tune(study)
    for seed in range(3):
        invent(study, "bpo", 1e-3, seed)
        invent(study, "rloo", 1e-2, seed, skill=0.0)
    assert write(study, tmp_path / "results", "the command")
    found = json.loads((tmp_path / "results" / "learning.json").read_text())
    assert found["made"]["command"] == "the command"
    assert found["worlds"]["short"]["rates"] == {"bpo": 1e-3, "rloo": 1e-2}
    methods = found["worlds"]["short"]["methods"]
    assert methods["bpo"]["final"]["mean"] > methods["rloo"]["final"]["mean"]
    reached = [methods[name]["compute_to_best_critic_free_final"] for name in ("bpo", "rloo")]
    assert reached[0] < reached[1]
    page = (study.out / "report-short" / "index.html").read_text()
    assert '"algorithms":["bpo","rloo"]' in page
    assert (tmp_path / "results" / "learning-short.png").read_bytes().startswith(b"\x89PNG")
    text = table(found)
    assert "| bpo | 0.001 | 3 |" in text
    assert "| rloo | 0.01 | 3 |" in text.splitlines()[7]
    assert text.splitlines()[6].endswith(" | – |")  # noqa: RUF001 -- no real games were given
    assert "| rloo | 0.01 | 3 |" in text


def test_variants_of_an_algorithm_stand_side_by_side(tmp_path):
    methods = ["bpo", "bpo-adaptive", "rloo"]
    study = Study(tmp_path / "runs", ["short"], methods, [1e-3], 1, 40000.0)
    for method in methods:
        for seed in (TUNING_SEED, 0):
            invent(study, method, 1e-3, seed)
    assert write(study, tmp_path / "results", "the command")
    page = (study.out / "report-short" / "index.html").read_text()
    assert '"algorithms":["bpo","bpo-adaptive","rloo"]' in page


def test_a_success_that_is_never_reached_is_told_from_one_that_is(study):
    tune(study)
    invent(study, "bpo", 1e-3, 0)
    runs = finished(study, "short", "bpo")
    end = load_run(runs[0].folder).points("eval_success").y[-1]
    assert compute_to(runs, 2.0) is None
    assert 0 < compute_to(runs, end - 0.05) <= 41000


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("method", METHODS)
def test_the_real_training_knows_the_options_of_every_method(tmp_path, world, method):
    study = Study(tmp_path, [world], [method], [1e-3], 1, None)
    job = study.job(world, method, 1e-3, 0)
    config = tyro.cli(TrainConfig, args=job.command()[3:])
    assert config.algo == METHODS[method].settings["algo"]
    assert config.learning.rate == 1e-3
    assert config.budget == WORLDS[world].compute


@pytest.mark.slow
def test_the_real_training_takes_every_method(tmp_path, monkeypatch):
    small = {
        "cloning.steps": 1,
        "cloning.tasks": 2,
        "world.train-tasks": 2,
        "world.eval-tasks": 2,
        "world.eval-episodes": 1,
        "tree.per-update": 1,
    }
    monkeypatch.setitem(os.environ, "PYTHONPATH", str(ROOT))
    study = Study(tmp_path, ["short"], list(METHODS), [1e-3], 1, 1.0)
    start = study.start("short")
    start = jobs.Job(start.name, start.folder, start.seed, 0.0, {**start.settings, **small})
    assert jobs.train_all([start], at_once=1)
    for method in METHODS:
        job = study.job("short", method, 1e-3, 0)
        job = jobs.Job(job.name, job.folder, 0, 1.0, {**job.settings, **small})
        assert jobs.train_all([job], at_once=1)


def test_success_over_rloo_is_that_of_pairs_with_the_same_seed(study):
    tune(study)
    for seed, skill in enumerate((0.2, 0.5, 0.8)):
        invent(study, "bpo", 1e-3, seed, skill=skill)
        invent(study, "rloo", 1e-2, seed, skill=skill)
    groups = learning.compared(study, "short")
    same = learning.over(groups["bpo"], list(reversed(groups["rloo"])))
    assert same.mean == pytest.approx(0.0, abs=0.05)
    last = learning.over(groups["bpo"][2:], groups["rloo"])
    assert last.mean == pytest.approx(0.0, abs=0.05), "not against the mean of other seeds"


def test_differences_are_those_of_one_seed_where_both_were_measured():
    one = {0: Points([0.0, 10.0], [0.0, 1.0]), 1: Points([0.0], [9.0])}
    other = {0: Points([0.0, 5.0, 20.0], [0.5, 0.5, 0.5])}
    assert differences(one, other) == [Points([0.0, 10.0], [-0.5, 0.5])]
