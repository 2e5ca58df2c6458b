import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from sandboxgym_learners import train
from sandboxgym_learners.algorithms import ALGORITHMS, EVERY_STEP, CreditConfig, Schedule
from sandboxgym_learners.checkpoint import CheckpointError, load_checkpoint
from sandboxgym_learners.config import ConfigError, LearningConfig, TrainConfig, TreeConfig
from sandboxgym_learners.scoring import ScoringPolicy
from sandboxgym_learners.tree import Group
from sandboxgym_learners.updates import read_timings, read_updates

ROOT = Path(__file__).parents[2]

TINY = [
    *("--world.env", "tests.learners.errands:tests/Errands-v0", "--world.arguments", "fog=0.0"),
    *("--world.train", "split=train", "--world.held-out", "split=test"),
    *("--world.train-tasks", "30", "--world.eval-tasks", "4"),
    *("--cloning.steps", "30", "--cloning.tasks", "20"),
    *("--cloning.batch", "8", "--cloning.rate", "0.01"),
    *("--policy.width", "16", "--tree.per-update", "2"),
    *("--tree.roots", "2", "--tree.siblings", "3"),
    *("--eval-every", "2", "--tree-every", "2", "--checkpoint-every", "3"),
    *("--budget", "9000", "--no-tensorboard"),
]


def run(out: Path, *options: str) -> int:
    return train.main([*TINY, "--out", str(out), *options])


def content(out: Path) -> dict[str, bytes]:
    """All that has to be reproducible."""
    names = ["updates.csv", "updates.jsonl", "policy/model.safetensors"]
    names += [f"trees/{path.name}" for path in (out / "trees").iterdir()]
    return {name: (out / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "first"
    assert run(out) == 0
    return out


def test_a_run_leaves_what_it_promises(finished):
    rows = read_updates(finished)
    assert [row.update for row in rows] == list(range(len(rows)))
    assert len(rows) > 7, "the other tests need updates to interrupt"
    assert rows[-2].compute < 9000 <= rows[-1].compute
    for row in rows[1:]:
        assert row.compute == row.env_steps + 2.5 * row.generated_tokens
        assert row.grad_variance is not None
        assert 0 <= row.success <= 1
        assert 0 <= row.constant_share <= 1
    evaluated = [row.update for row in rows if row.eval_success is not None]
    assert evaluated == sorted({*range(0, len(rows), 2), len(rows) - 1})
    assert rows[1].threshold is None
    assert rows[1].branch_points == 0
    assert any(row.branch_points for row in rows[2:])
    assert rows[-1].eta is not None
    assert rows[-1].predicted_efficiency is not None
    assert [t.update for t in read_timings(finished)] == [row.update for row in rows]
    saved = json.loads((finished / "config.json").read_text())
    assert saved["config"]["tree"]["siblings"] == 3
    assert saved["versions"]["torch"] == torch.__version__


def test_kept_trees_can_be_read(finished):
    paths = sorted((finished / "trees").iterdir())
    assert [int(path.stem) % 2 for path in paths] == [0] * len(paths)
    kept = json.loads(paths[-1].read_text())
    tree = Group.from_json(kept["tree"])
    assert kept["task"].startswith("put the")
    assert all(step.observation and step.weight > 0 for step in tree.steps())


def test_the_policies_before_and_after_can_be_loaded(finished):
    start, end = ScoringPolicy.load(finished / "start"), ScoringPolicy.load(finished / "policy")
    pairs = zip(start.model.parameters(), end.model.parameters(), strict=True)
    assert any(not torch.equal(before, after) for before, after in pairs)


def test_the_same_seed_gives_the_same_bits(finished, tmp_path):
    assert run(tmp_path / "again") == 0
    assert content(tmp_path / "again") == content(finished)


def test_another_seed_gives_another_run(finished, tmp_path):
    assert run(tmp_path / "other", "--seed", "1", "--budget", "500") == 0
    assert read_updates(tmp_path / "other")[1] != read_updates(finished)[1]


def test_a_killed_run_goes_on_to_the_same_bits(finished, tmp_path):
    out = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-m", "sandboxgym_learners.train", *TINY, "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    rows = out / "updates.csv"
    while not rows.exists() or rows.read_bytes().count(b"\n") < 6:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "policy").exists(), "it was finished already"
    assert run(out, "--resume") == 0
    assert content(out) == content(finished)


@pytest.mark.parametrize("after", [0, 3, 4, 5])
def test_a_run_that_dies_between_row_and_checkpoint_goes_on(finished, tmp_path, monkeypatch, after):
    out = tmp_path / "died"
    record = train.Trainer._record

    def die(self, update, timing, trees):
        if update.update != after:
            return record(self, update, timing, trees)
        self.log.write(update, timing)
        with rows.open("a") as file:
            file.write(f"{update.update + 1},12")
        raise MemoryError

    rows = out / "updates.csv"
    monkeypatch.setattr(train.Trainer, "_record", die)
    with pytest.raises(MemoryError):
        run(out)
    monkeypatch.undo()
    assert run(out, "--resume") == 0
    assert content(out) == content(finished)


def test_resuming_a_finished_run_changes_nothing(finished):
    before = content(finished)
    assert run(finished, "--resume") == 0
    assert content(finished) == before


def test_resume_without_a_run_starts_one(finished, tmp_path):
    assert run(tmp_path / "new", "--resume") == 0
    assert content(tmp_path / "new") == content(finished)


@pytest.mark.parametrize("algo", ["rloo", "grpo", "ppo"])
def test_the_others_train_without_branching(tmp_path, algo):
    assert run(tmp_path / algo, "--algo", algo, "--tree.roots", "4", "--budget", "600") == 0
    rows = read_updates(tmp_path / algo)
    assert all(row.branch_points == 0 for row in rows[1:])
    assert rows[-1].returns == 8 * (len(rows) - 1)
    assert rows[-1].eta is None


@pytest.mark.filterwarnings("ignore::sandboxgym_learners.branching.BiasWarning")
@pytest.mark.parametrize("algo", ["vineppo", "paper"])
def test_the_others_that_branch_train(tmp_path, algo):
    assert run(tmp_path / algo, "--algo", algo, "--tree.per-update", "1", "--budget", "800") == 0
    rows = read_updates(tmp_path / algo)
    assert rows[-1].branch_points > 0
    assert rows[-1].grad_norm > 0


@pytest.mark.parametrize(
    "options",
    [
        ["--algo", "ppo", "--tree.roots", "3"],
        ["--tree.branching", "adaptive", "--adaptive.first-updates", "2"],
        ["--tree.rule", "coin", "--credit.mix", "0.7", "--credit.backbone-share", "0.5"],
    ],
    ids=["ppo", "adaptive", "coin"],
)
def test_an_interrupted_run_of_any_kind_goes_on_to_the_same_bits(tmp_path, options):
    assert run(tmp_path / "straight", *options, "--budget", "2500") == 0
    assert run(tmp_path / "twice", *options, "--budget", "1200") == 0
    assert run(tmp_path / "twice", *options, "--budget", "2500", "--resume") == 0
    rows = [read_updates(tmp_path / name) for name in ("straight", "twice")]
    assert rows[0][-1] == rows[1][-1]
    weights = [tmp_path / name / "policy" / "model.safetensors" for name in ("straight", "twice")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_another_algorithm_can_start_from_the_same_policy(finished, tmp_path):
    options = ["--algo", "rloo", "--tree.roots", "3", "--budget", "300"]
    assert run(tmp_path / "rloo", *options, "--start", str(finished / "start")) == 0
    starts = [folder / "start" / "model.safetensors" for folder in (finished, tmp_path / "rloo")]
    assert starts[0].read_bytes() == starts[1].read_bytes()
    firsts = [read_updates(folder)[0] for folder in (finished, tmp_path / "rloo")]
    assert firsts[0] == firsts[1]


def test_the_best_policy_is_kept(finished):
    rows = [row for row in read_updates(finished) if row.eval_success is not None]
    best = max(rows, key=lambda row: (row.eval_success, -row.update))
    about = json.loads((finished / "best" / "evaluation.json").read_text())
    assert about == {"update": best.update, "eval_success": best.eval_success}
    kept = (finished / "best" / "model.safetensors").read_bytes()
    same = [kept == (finished / f / "model.safetensors").read_bytes() for f in ("start", "policy")]
    assert same == [best.update == 0, best.update == rows[-1].update]


def test_training_solves_more_of_the_held_out_tasks(tmp_path):
    options = "--policy.width 32 --tree.per-update 8 --tree.siblings 8 --budget 120000"
    worlds = "--world.train-tasks 200 --world.eval-tasks 60 --eval-every 100"
    rate = ["--learning.rate", "1e-3", "--learning.warmup", "0"]
    assert run(tmp_path / "long", *options.split(), *worlds.split(), *rate) == 0
    rows = read_updates(tmp_path / "long")
    assert rows[-1].eval_success >= rows[0].eval_success + 0.1


def test_a_finished_run_goes_on_with_a_larger_budget(tmp_path):
    assert run(tmp_path / "long", "--budget", "900") == 0
    assert run(tmp_path / "grown", "--budget", "300") == 0
    assert run(tmp_path / "grown", "--budget", "900", "--resume") == 0
    weights = Path("policy", "model.safetensors")
    long, grown = ((tmp_path / name / weights).read_bytes() for name in ("long", "grown"))
    assert long == grown
    assert json.loads((tmp_path / "grown" / "config.json").read_text())["config"]["budget"] == 900
    assert read_updates(tmp_path / "long")[-1] == read_updates(tmp_path / "grown")[-1]


@pytest.mark.parametrize(
    "options",
    [
        ["--algo", "rloo", "--tree.roots", "1"],
        ["--budget", "nan"],
        ["--learning.clip", "-1"],
        ["--learning.rate", "-1"],
        ["--tree.quantile", "2"],
        ["--tree.max-branches", "-1"],
        ["--policy.width", "30"],
    ],
)
def test_impossible_settings_are_refused_in_a_line(capsys, tmp_path, options):
    with pytest.raises(SystemExit, match="2"):
        run(tmp_path / "x", *options)
    assert options[-2].removeprefix("--").replace("-", "_") in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_folder_of_something_else_is_not_taken_for_a_run(capsys, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "qwen2"}')
    refused(capsys, *TINY, "--out", str(tmp_path / "model"), "--resume")
    assert (tmp_path / "model" / "config.json").read_text() == '{"model_type": "qwen2"}'


def test_a_run_is_not_started_over_with_another_seed(capsys, finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / "checkpoint.pt").unlink()
    assert "seed" in refused(
        capsys, *TINY, "--out", str(tmp_path / "run"), "--resume", "--seed", "9"
    )


def test_rows_that_are_missing_are_noticed(capsys, finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    rows = (tmp_path / "run" / "updates.csv").read_text().splitlines(keepends=True)
    (tmp_path / "run" / "updates.csv").write_text("".join(rows[:2]))
    assert "ends before" in refused(capsys, *TINY, "--out", str(tmp_path / "run"), "--resume")


def refused(capsys, *options: str) -> str:
    assert train.main(list(options)) == 2
    return capsys.readouterr().err


def test_a_directory_in_use_is_refused(finished, capsys):
    assert "--resume" in refused(capsys, *TINY, "--out", str(finished))


def test_a_checkpoint_of_another_configuration_is_refused(finished, capsys):
    before = content(finished)
    options = [*TINY, "--out", str(finished), "--resume", "--learning.rate", "0.5"]
    message = refused(capsys, *options)
    assert "another configuration" in message
    assert "['learning']['rate'] was 0.0005 and is 0.5" in message
    assert content(finished) == before


def test_a_damaged_checkpoint_is_refused(finished, tmp_path):
    config = TrainConfig(out=tmp_path)
    for damage in (b"", b"no checkpoint", (finished / "checkpoint.pt").read_bytes()[:-1000]):
        (tmp_path / "checkpoint.pt").write_bytes(damage)
        with pytest.raises(CheckpointError, match="not an intact checkpoint"):
            load_checkpoint(config)


def test_a_checkpoint_cannot_run_code(tmp_path):
    class Hostile:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "pwned",))

    torch.save({"config": {}, "state": Hostile()}, tmp_path / "checkpoint.pt")
    with pytest.raises(CheckpointError, match="not an intact checkpoint"):
        load_checkpoint(TrainConfig(out=tmp_path))
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algo": "ppo2"}, "no algorithm 'ppo2': choose among bpo, rloo, grpo, ppo"),
        ({"algo": "rloo", "tree": TreeConfig(branching="adaptive")}, "adaptive is for bpo"),
        ({"tree": TreeConfig(branching="adaptive", max_branches=2)}, "leave it 1"),
        ({"tree": TreeConfig(branching="adaptive", roots=1)}, "tree.roots must be at least 2"),
        ({"algo": "grpo", "tree": TreeConfig(max_branches=1)}, "tree.max_branches must be 0"),
        ({"credit": CreditConfig(mix=1.5)}, "credit.mix is 1.5; it must be at most 1"),
        ({"threads": 0}, "threads is 0; it must be at least 1"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
    ],
)
def test_impossible_values_are_refused(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig(out=tmp_path, **changes)


def test_the_command_line_refuses_an_unknown_algorithm(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        run(tmp_path / "run", "--algo", "ppo2")
    assert ended.value.code == 2
    assert "choose among" in "".join(capsys.readouterr())
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore::sandboxgym_learners.branching.BiasWarning")
def test_algorithms_differ_in_what_they_promise(tmp_path):
    shapes = [str(TrainConfig(out=tmp_path, algo=algo).shape) for algo in ALGORITHMS]
    assert shapes == [
        "4x3x1",
        "16 episodes",
        "16 episodes",
        "16 episodes",
        f"2x4x{EVERY_STEP}",
        "1x4x3",
    ]
    assert TrainConfig(out=tmp_path, algo="ppo").schedule == Schedule(3e-4, 4, 3)
    assert TrainConfig(out=tmp_path, algo="ppo").to_dict()["learning"]["epochs"] == 4
    changed = TrainConfig(out=tmp_path, algo="ppo", learning=LearningConfig(epochs=2))
    assert changed.schedule == Schedule(3e-4, 2, 3)
