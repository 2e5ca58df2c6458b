import json
import sys

import pytest

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym_learners.runlock import RunDirectoryError
from sandboxgym_learners.runlog import RunLog, write_atomically
from sandboxgym_learners.tree import Group, Segment, Step
from sandboxgym_learners.updates import Timing, Update, read_timings, read_updates

ROWS = [
    Update(0, eval_success=0.1, eval_steps=9.0),
    Update(1, compute=100.5, env_steps=40, success=1 / 3, threshold=None, grad_norm=1e-17),
    Update(2, compute=300.0, env_steps=80, success=0.1 + 0.2, branch_points=3, eval_success=1.0),
]
TIMINGS = [Timing(row.update, 1.5, 0.5, 0.25, 0.125, 0.5, 0.0) for row in ROWS]
TREE = Group([Segment([Step("p", ("a",), 0, "a", -0.1, 0.5, 1.0, "o", 0)], success=True)], 1)


def filled(folder, *, tensorboard=False) -> RunLog:
    log = RunLog.create(folder, {"config": {"algo": "bpo"}}, tensorboard=tensorboard)
    for row, timing in zip(ROWS, TIMINGS, strict=True):
        log.write(row, timing)
        log.write_tree(row.update, algo="bpo", task="tidy up", tree=TREE)
    log.close()
    return log


def test_what_is_written_is_read_back_to_the_bit(tmp_path):
    filled(tmp_path / "run")
    assert read_updates(tmp_path / "run") == ROWS
    assert read_timings(tmp_path / "run") == TIMINGS


def test_json_lines_hold_the_same_rows(tmp_path):
    filled(tmp_path)
    lines = (tmp_path / "updates.jsonl").read_text().splitlines()
    assert [Update(**json.loads(line)) for line in lines] == ROWS
    assert json.loads((tmp_path / "config.json").read_text()) == {"config": {"algo": "bpo"}}


def test_trees_are_kept_whole(tmp_path):
    filled(tmp_path)
    content = json.loads((tmp_path / "trees" / "000002.json").read_text())
    assert (content["update"], content["algo"], content["task"]) == (2, "bpo", "tidy up")
    assert Group.from_json(content["tree"]) == TREE


def test_resuming_cuts_what_came_after_the_checkpoint(tmp_path):
    filled(tmp_path)
    whole = {name: (tmp_path / name).read_bytes() for name in ("updates.csv", "updates.jsonl")}
    with (tmp_path / "updates.csv").open("a") as file:
        file.write("3,400.0,9")  # the process died while it wrote
    log = RunLog.resume(tmp_path, last_update=1, tensorboard=False)
    assert read_updates(tmp_path) == ROWS[:2]
    assert read_timings(tmp_path) == TIMINGS[:2]
    assert sorted(path.name for path in (tmp_path / "trees").iterdir()) == [
        "000000.json",
        "000001.json",
    ]
    log.write(ROWS[2], TIMINGS[2])
    assert {name: (tmp_path / name).read_bytes() for name in whole} == whole


def test_a_directory_in_use_is_refused(tmp_path):
    filled(tmp_path / "run")
    with pytest.raises(RunDirectoryError, match="not an empty directory"):
        RunLog.create(tmp_path / "run", {}, tensorboard=False)
    assert read_updates(tmp_path / "run") == ROWS
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunDirectoryError, match="not an empty directory"):
        RunLog.create(tmp_path / "file", {}, tensorboard=False)


def test_a_restart_is_for_runs_only(tmp_path):
    (tmp_path / "thesis.tex").write_text("all my work")
    with pytest.raises(RunDirectoryError, match="not an empty directory"):
        RunLog.create(tmp_path, {}, tensorboard=False, restart=True)
    filled(tmp_path / "run")
    RunLog.create(tmp_path / "run", {}, tensorboard=False, restart=True)
    assert read_updates(tmp_path / "run") == []


def test_a_directory_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunDirectoryError, match="is missing"):
        read_updates(tmp_path)
    (tmp_path / "updates.csv").write_text("update,success\n1,0.5\n")
    with pytest.raises(RunDirectoryError, match="has the columns"):
        read_updates(tmp_path)


def test_tensorboard_gets_the_numbers(tmp_path):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    ).EventAccumulator
    filled(tmp_path, tensorboard=True)
    events = accumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    found = [(e.step, e.value) for e in events.Scalars("success")]
    assert found == [(1, pytest.approx(1 / 3)), (2, pytest.approx(0.3))]


def test_missing_tensorboard_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingDependencyError, match=r"sandboxgym\[learners\].*--no-tensorboard"):
        RunLog.create(tmp_path / "run", {}, tensorboard=True)
    RunLog.create(tmp_path / "run", {}, tensorboard=False)


def test_an_interrupted_write_leaves_the_old_content(tmp_path, monkeypatch):
    path = tmp_path / "state"
    write_atomically(path, b"old")

    def fail(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, b"new and longer")
    assert path.read_bytes() == b"old"
