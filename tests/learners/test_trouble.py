"""What can go wrong while training: a clear message, and nothing lost but the current update."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from sandboxgym_learners import train, trainer
from sandboxgym_learners.config import StopConfig
from sandboxgym_learners.divergence import DivergenceError, EntropyWatch
from sandboxgym_learners.updates import read_updates
from tests.learners.errands import Errands
from tests.learners.test_train import TINY

ROOT = Path(__file__).parents[2]
OPTIONS = [
    *TINY,
    *("--checkpoint-every", "1", "--eval-every", "1", "--budget", "1300"),
    *("--cloning.steps", "3", "--cloning.tasks", "3"),
    *("--world.train-tasks", "4", "--world.eval-tasks", "2"),
]


def run(out: Path, *options: str) -> int:
    return train.main([*OPTIONS, "--out", str(out), *options])


def wait_for(path: Path, process: subprocess.Popen) -> None:
    """Wait until a process has made a file or folder; it must not end before."""
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.01)


def results(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in ("updates.csv", "policy/model.safetensors")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("trouble") / "undisturbed"
    assert run(out) == 0
    assert len(read_updates(out)) > 3, "there should be updates to interrupt"
    return out


@pytest.mark.parametrize(
    "phase",
    [
        "starting_policy",
        "Trainer._evaluate",
        "Collector.collect",
        "Learner.update",
        "RunLog.write",
        "checkpoint.save_checkpoint",
        "_save",
    ],
)
def test_an_interruption_in_any_phase_loses_at_most_the_update(
    finished, tmp_path, monkeypatch, capsys, phase
):
    path, _, name = phase.rpartition(".")
    holder = getattr(trainer, path) if path else trainer
    real = getattr(holder, name)
    left = 1 if phase == "starting_policy" else 3

    def interrupted(*args, **kwargs):
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(holder, name, interrupted)
    out = tmp_path / "run"
    assert run(out) == 130
    assert "--resume goes on" in capsys.readouterr().err
    done = len((out / "updates.csv").read_text().splitlines()) - 1
    monkeypatch.undo()
    assert run(out, "--resume") == 0
    assert results(out) == results(finished)
    assert done <= len(read_updates(out))


def test_a_sandbox_that_dies_is_named_and_the_run_goes_on(finished, tmp_path, monkeypatch, capsys):
    real, left = Errands.step, 200

    def dying(self, action):
        nonlocal left
        left -= 1
        if left < 0:
            raise ConnectionResetError("the sandbox is gone")
        return real(self, action)

    monkeypatch.setattr(Errands, "step", dying)
    out = tmp_path / "run"
    assert run(out) == 2
    message = capsys.readouterr().err
    assert "could not be collected from tests.learners.errands:tests/Errands-v0" in message
    assert "ConnectionResetError: the sandbox is gone" in message
    assert "--resume goes on" in message
    monkeypatch.undo()
    assert run(out, "--resume") == 0
    assert results(out) == results(finished)


def test_a_disk_that_fills_leaves_a_run_that_goes_on(finished, tmp_path):
    """Files may not grow beyond a size, which stops a checkpoint in the middle of its writing."""
    out = tmp_path / "run"
    size = (finished / "checkpoint.pt").stat().st_size
    kept = finished / "start" / "model.safetensors"
    assert kept.stat().st_size < size // 2

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, resource.RLIM_INFINITY))

    process = subprocess.run(
        [sys.executable, "-m", "sandboxgym_learners.train", *OPTIONS, "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        preexec_fn=limited,
        check=False,
    )
    assert process.returncode == 2
    assert "error: [Errno 27] File too large" in process.stderr
    assert "--resume goes on" in process.stderr
    assert "Traceback" not in process.stderr
    assert not list(out.glob(".*.tmp")), "it should leave no half file"
    assert run(out, "--resume") == 0
    assert results(out) == results(finished)


def test_a_signal_from_the_keyboard_ends_a_run_with_a_line(tmp_path):
    out = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "sandboxgym_learners.train", *OPTIONS, "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        # What runs in the background of a shell ignores the signal, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        wait_for(out / "updates.csv", process)
        process.send_signal(signal.SIGINT)
        _, message = process.communicate()
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "interrupted: " in message
    assert "Traceback" not in message


def test_a_tracker_that_is_not_there_is_named_and_leaves_no_directory(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert run(tmp_path / "run", "--tensorboard") == 2
    assert "--no-tensorboard" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_start_that_is_not_there_is_named(tmp_path, capsys):
    assert run(tmp_path / "run", "--start", str(tmp_path / "nowhere")) == 2
    message = capsys.readouterr().err
    assert f"{tmp_path / 'nowhere'} holds no saved policy" in message


def test_a_policy_that_is_certain_and_wrong_ends_training():
    watch = EntropyWatch(StopConfig(least_entropy=0.01, patience=3, solved=0.9))
    for entropy, success in [(0.001, 0.2), (0.001, 0.2), (0.5, 0.2), (0.001, 0.95)] * 3:
        watch.end_update(entropy=entropy, success=success)
    resumed = EntropyWatch(watch.config)
    for _ in range(2):
        watch.end_update(entropy=0.001, success=0.2)
    resumed.load_state_dict(watch.state_dict())
    for each in (watch, resumed):
        with pytest.raises(DivergenceError, match=r"--learning\.entropy"):
            each.end_update(entropy=0.001, success=0.2)


def test_a_run_that_collapses_says_so_and_keeps_what_it_has(tmp_path, capsys):
    options = ["--stop.least-entropy", "9", "--stop.patience", "2"]
    assert run(tmp_path / "run", *options) == 2
    assert "has become certain" in capsys.readouterr().err
    assert len(read_updates(tmp_path / "run")) == 3
    assert (tmp_path / "run" / "best").is_dir()


def test_a_second_training_in_one_directory_is_refused_and_disturbs_nothing(finished, tmp_path):
    out = tmp_path / "run"
    command = [sys.executable, "-m", "sandboxgym_learners.train", *OPTIONS, "--out", str(out)]
    first = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
    wait_for(out / "start", first)
    os.kill(first.pid, signal.SIGSTOP)
    try:
        second = subprocess.run(
            [*command, "--resume"], cwd=ROOT, capture_output=True, text=True, check=False
        )
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert second.returncode == 2
    assert f"another process (pid {first.pid})" in second.stderr
    first.communicate()
    assert first.returncode == 0
    assert results(out) == results(finished)


def test_what_never_got_to_its_start_does_not_stand_in_the_way(tmp_path, capsys):
    out = tmp_path / "run"
    assert run(out, "--world.env", "CartPole-v1") == 2
    assert (out / "config.json").is_file()
    assert run(out, "--budget", "0") == 0
    capsys.readouterr()
    assert run(out) == 2
    assert "is not an empty directory" in capsys.readouterr().err
