import json
import shutil

import pytest
import torch

from sandboxgym_learners import evaluate, train
from sandboxgym_learners.evaluate import EvaluateConfig, EvaluationError
from sandboxgym_learners.policy import PolicyError
from sandboxgym_learners.updates import read_updates
from sandboxgym_learners.worlds import WorldError
from tests.learners.test_train import TINY


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("runs") / "one"
    assert train.main([*TINY, "--budget", "3000", "--out", str(out)]) == 0
    return out


def test_it_finds_what_training_found(finished):
    rows = read_updates(finished)
    ended = evaluate.evaluate(EvaluateConfig(finished, tasks=4))
    began = evaluate.evaluate(EvaluateConfig(finished, policy="start", tasks=4))
    assert (ended.success, ended.steps) == (rows[-1].eval_success, rows[-1].eval_steps)
    assert (began.success, began.steps) == (rows[0].eval_success, rows[0].eval_steps)


def test_more_tasks_than_are_played_at_once_are_all_played(finished, monkeypatch):
    together = evaluate.evaluate(EvaluateConfig(finished, tasks=3, episodes=2))
    monkeypatch.setattr(evaluate, "TASKS_AT_ONCE", 2)
    apart = evaluate.evaluate(EvaluateConfig(finished, tasks=3, episodes=2))
    assert (apart.tasks, apart.episodes) == (together.tasks, together.episodes) == (3, 2)
    assert 0 <= apart.success <= 1
    assert apart.margin is not None


def test_arguments_replace_those_of_the_run(finished):
    with pytest.raises(WorldError, match="no_such"):
        evaluate.evaluate(EvaluateConfig(finished, arguments=("no_such=1",), tasks=1))
    short = evaluate.evaluate(EvaluateConfig(finished, horizon=1, tasks=2))
    assert short.steps == 1


def test_the_command_prints_what_was_found(finished, capsys):
    assert evaluate.main([str(finished), "--tasks", "2", "--policy", "best"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tasks"] == 2
    assert 0 <= found["success"] <= 1


def test_what_cannot_be_evaluated_is_refused_with_the_way_out(finished, tmp_path, capsys):
    assert evaluate.main([str(tmp_path)]) == 2
    assert "holds no run" in capsys.readouterr().err
    with pytest.raises(EvaluationError, match="tasks is 0"):
        EvaluateConfig(finished, tasks=0)
    part = tmp_path / "run"
    part.mkdir()
    shutil.copy(finished / "config.json", part)
    with pytest.raises(PolicyError, match="holds no saved policy"):
        evaluate.evaluate(EvaluateConfig(part))


def test_a_run_of_another_version_is_named(finished, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    content = json.loads((run / "config.json").read_text())
    content["config"]["world"]["of_tomorrow"] = 1
    (run / "config.json").write_text(json.dumps(content))
    with pytest.raises(EvaluationError, match=r"another version.*of_tomorrow"):
        evaluate.evaluate(EvaluateConfig(run))
