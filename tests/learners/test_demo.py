"""The demo around a stand-in for training that writes invented runs; once around the real one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandboxgym_learners import demo, jobs
from sandboxgym_learners.demo import DemoConfig, DemoError, main
from sandboxgym_learners.jobs import Job, last_compute, train_all
from tests.learners.run_fixtures import make_run
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]

STAND_IN = """
import sys, time
from pathlib import Path
from tests.learners.run_fixtures import make_run
folder, algo, seed, budget, ending = sys.argv[1:]
if ending == "fails":
    sys.exit("error: the sandbox is on fire")
if ending == "hangs":
    time.sleep(600)
make_run(Path(folder), algo, int(seed), config={"budget": float(budget)})
"""


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """Let jobs run the stand-in; gives a dict that says how the run of an algorithm ends."""
    endings: dict[str, str] = {}
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)

    def command(job: Job) -> list[str]:
        what = [str(job.folder), job.name, str(job.seed), str(job.budget)]
        return [sys.executable, str(script), *what, endings.get(job.name, "succeeds")]

    monkeypatch.setattr(Job, "command", command)
    monkeypatch.setattr(jobs, "POLL_SECONDS", 0.02)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return endings


@pytest.fixture
def started(monkeypatch):
    """The processes that jobs started."""
    processes: list[subprocess.Popen[bytes]] = []
    start = Job.start

    def record(job: Job) -> subprocess.Popen[bytes]:
        processes.append(start(job))
        return processes[-1]

    monkeypatch.setattr(Job, "start", record)
    return processes


def test_the_demo_trains_both_and_says_where_the_report_is(stand_in, tmp_path, capsys):
    out = tmp_path / "report"
    assert main(["--out", str(out), "--seeds", "2", "--budget", "1000"]) == 0
    names = ["bpo-0", "bpo-1", "rloo-0", "rloo-1"]
    assert sorted(path.name for path in (out / "runs").iterdir() if path.is_dir()) == names
    page = (out / "index.html").read_text("utf-8")
    assert f"python -m sandboxgym_learners.demo --out {out} --seeds 2 --budget 1000" in page
    assert (out / "index.html").as_uri() in capsys.readouterr().out


def test_what_is_finished_is_not_trained_again(stand_in, started, tmp_path):
    options = ["--out", str(tmp_path / "report"), "--budget", "1000"]
    assert main([*options, "--seeds", "1"]) == 0
    assert len(started) == 2
    stand_in["bpo"] = stand_in["rloo"] = "fails"
    assert main([*options, "--seeds", "1"]) == 0
    assert len(started) == 2


def test_more_seeds_add_runs(stand_in, started, tmp_path):
    options = ["--out", str(tmp_path / "report"), "--budget", "1000"]
    assert main([*options, "--seeds", "1"]) == 0
    assert main([*options, "--seeds", "2"]) == 0
    assert len(started) == 4


def test_a_run_that_fails_ends_the_demo_with_its_last_words(stand_in, started, tmp_path, capsys):
    stand_in.update(bpo="fails", rloo="hangs")
    assert main(["--out", str(tmp_path / "report"), "--budget", "1000"]) == 1
    message = capsys.readouterr().err
    assert "bpo with seed 0 ended with status 1" in message
    assert "the sandbox is on fire" in message
    assert len(started) == 2
    assert all(process.poll() is not None for process in started)


def test_an_interrupted_demo_stops_its_runs_and_goes_on_later(
    stand_in, started, tmp_path, capsys, monkeypatch
):
    stand_in["rloo"] = "hangs"
    show = jobs._show

    def interrupt(*arguments):
        show(*arguments)
        if (tmp_path / "report" / "runs" / "bpo-0" / "policy").exists():
            raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "_show", interrupt)
    options = ["--out", str(tmp_path / "report"), "--budget", "1000", "--seeds", "1"]
    assert main(options) == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert all(process.poll() is not None for process in started)

    monkeypatch.setattr(jobs, "_show", show)
    del stand_in["rloo"]
    assert main(options) == 0
    assert len(started) == 3


def test_a_demo_that_is_terminated_leaves_no_run_behind(tmp_path):
    program = subprocess.Popen(
        [
            *(sys.executable, "-m", "sandboxgym_learners.demo", "--out", str(tmp_path / "report")),
            *("--seeds", "1", "--budget", "100000"),
        ],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
    )
    children = Path(f"/proc/{program.pid}/task/{program.pid}/children")
    try:
        begun = (tmp_path / "report" / "runs").glob  # runs that have come so far are known to it
        wait_until(lambda: len(list(begun("*/config.json"))) == 2, 100)
        runs = [Path("/proc") / pid for pid in children.read_text().split()]
        program.terminate()
        assert program.wait() == 130
    finally:
        program.kill()
    wait_until(lambda: not any(run.exists() for run in runs))


def test_no_more_runs_at_once_than_asked_for(stand_in, tmp_path, monkeypatch):
    alive = []
    show = jobs._show

    def count(bar, jobs, running):
        alive.append(len(running))
        show(bar, jobs, running)

    monkeypatch.setattr(jobs, "_show", count)
    options = ["--out", str(tmp_path / "report"), "--budget", "1000", "--seeds", "2"]
    assert main([*options, "--at-once", "1"]) == 0
    assert max(alive) <= 1


def test_runs_of_another_budget_are_refused(stand_in, tmp_path, capsys):
    out = str(tmp_path / "report")
    assert main(["--out", out, "--seeds", "1", "--budget", "1000"]) == 0
    assert main(["--out", out, "--seeds", "1", "--budget", "2000"]) == 1
    assert "with a budget of 1,000, not 2,000" in capsys.readouterr().err


def test_minutes_set_the_budget_unless_it_is_given():
    assert DemoConfig(minutes=2).compute == 2 * demo.COMPUTE_PER_MINUTE
    assert DemoConfig(minutes=2, budget=7).compute == 7


@pytest.mark.parametrize("options", [{"seeds": 0}, {"at_once": 0}, {"minutes": 0}, {"budget": -1}])
def test_impossible_options_are_refused(options):
    with pytest.raises(DemoError):
        DemoConfig(**options)


def test_progress_counts_complete_rows_only(tmp_path):
    folder = make_run(tmp_path / "a", "bpo", 0, updates=3, complete=False)
    job = Job("bpo", folder, 0, 6000, {})
    before = last_compute(folder)
    with (folder / "updates.jsonl").open("a") as file:
        file.write('{"update": 4, "compute": 50')
    assert last_compute(folder) == before
    assert 0.5 < job.progress() < 0.7
    (folder / "policy").mkdir()
    assert job.progress() == 1


def test_progress_of_a_run_that_has_not_begun(tmp_path):
    assert Job("bpo", tmp_path / "nothing", 0, 6000, {}).progress() == 0


def test_at_the_deadline_runs_are_ended_and_gone_on_with_later(stand_in, started, tmp_path):
    stand_in["slow"] = "hangs"
    wanted = [Job("slow", tmp_path / "slow-0", 0, 1000, {})]
    assert not train_all(wanted, at_once=1, deadline=time.monotonic() + 0.5)
    assert [process.poll() is not None for process in started] == [True]
    stand_in.clear()
    assert train_all(wanted, at_once=1, deadline=time.monotonic() + 60)
    assert wanted[0].finished()


def test_the_real_training_takes_the_commands(tmp_path, monkeypatch):
    command = Job.command
    small = ["--cloning.steps", "1", "--cloning.tasks", "2", "--world.train-tasks", "2"]
    small += ["--world.eval-tasks", "2", "--tree.per-update", "1", "--tree-every", "1"]
    monkeypatch.setattr(Job, "command", lambda job: [*command(job), *small])
    monkeypatch.setitem(os.environ, "PYTHONPATH", str(ROOT))
    out = tmp_path / "report"
    assert main(["--out", str(out), "--seeds", "1", "--budget", "1"]) == 0
    page = (out / "index.html").read_text("utf-8")
    assert '"algorithms":["bpo","rloo"]' in page
    assert '"trees":[{' in page
