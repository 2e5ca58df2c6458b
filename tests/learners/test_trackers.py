import sys
from importlib import import_module

import pytest

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym_learners import trackers
from sandboxgym_learners.trackers import TrackerError
from sandboxgym_learners.updates import read_updates
from tests.learners.test_trouble import OPTIONS, finished, results, run  # noqa: F401

tracking = pytest.importorskip("accelerate.tracking", reason="needs accelerate")


class Memory(tracking.GeneralTracker):
    """A service that remembers what it was told."""

    name = "memory"
    requires_logging_directory = False
    tracker = None

    def __init__(self, run_name, **_):
        super().__init__()
        Memory.told, Memory.config, Memory.finished = {}, None, False

    def store_init_configuration(self, values):
        Memory.config = values

    def log(self, values, step=None, **_):
        if step == Memory.breaks_at:
            raise ConnectionError("nobody answers")
        Memory.told[step] = values

    def finish(self):
        Memory.finished = True


@pytest.fixture
def memory(monkeypatch):
    monkeypatch.setitem(tracking.LOGGER_TYPE_TO_CLASS, "memory", Memory)
    Memory.breaks_at = None
    return Memory


def test_a_tracker_gets_every_number_and_changes_nothing(memory, finished, tmp_path):  # noqa: F811
    assert run(tmp_path / "run", "--trackers", "memory") == 0
    assert results(tmp_path / "run") == results(finished)
    assert memory.finished
    assert memory.config["tree.siblings"] == 3
    rows = read_updates(finished)
    assert sorted(memory.told) == [row.update for row in rows]
    assert memory.told[2]["compute"] == rows[2].compute
    assert None not in memory.told[0].values()


def test_a_tracker_that_fails_is_named_and_the_run_goes_on_without_it(
    memory,
    finished,  # noqa: F811
    tmp_path,
    capsys,
):
    memory.breaks_at = 2
    assert run(tmp_path / "run", "--trackers", "memory") == 2
    message = capsys.readouterr().err
    assert "the tracker memory failed (ConnectionError: nobody answers)" in message
    assert "--resume" in message
    assert run(tmp_path / "run", "--resume") == 0
    assert results(tmp_path / "run") == results(finished)


def test_tensorboard_through_accelerate_keeps_its_files_in_the_run(tmp_path):
    accumulator = import_module("tensorboard.backend.event_processing.event_accumulator")
    assert run(tmp_path / "run", "--trackers", "tensorboard") == 0
    events = accumulator.EventAccumulator(str(tmp_path / "run" / "tracking" / trackers.PROJECT))
    events.Reload()
    rows = read_updates(tmp_path / "run")
    assert [event.step for event in events.Scalars("compute")] == [row.update for row in rows]


def test_a_tracker_that_is_not_known_or_not_there_leaves_no_directory(
    tmp_path, capsys, monkeypatch
):
    assert run(tmp_path / "run", "--trackers", "carrier-pigeon") == 2
    assert "no tracker 'carrier-pigeon': choose among aim," in capsys.readouterr().err
    monkeypatch.setattr(tracking, "get_available_trackers", list)
    assert run(tmp_path / "run", "--trackers", "wandb") == 2
    assert "pip install wandb" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_without_accelerate_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate.tracking", None)
    trackers.check(())
    with pytest.raises(MissingDependencyError, match=r"sandboxgym\[trackers\]"):
        trackers.check(["wandb"])


def test_a_tracker_that_does_not_start_is_named(tmp_path, monkeypatch):
    class Locked(Memory):
        def __init__(self, run_name, **_):
            raise PermissionError("no key")

    monkeypatch.setitem(tracking.LOGGER_TYPE_TO_CLASS, "locked", Locked)
    with pytest.raises(TrackerError, match=r"locked could not start \(PermissionError: no key\)"):
        trackers.Trackers(["locked"], tmp_path, {})
