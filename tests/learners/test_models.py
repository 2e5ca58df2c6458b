"""Training a policy that writes: the whole path with a tiny model, and with a real one."""

import json
import sys

import pytest
import torch

from sandboxgym_learners import train
from sandboxgym_learners.chat import COMMAND, EXAMPLE, action_in
from sandboxgym_learners.config import ConfigError, PolicyConfig
from sandboxgym_learners.lora import recompute_activations
from sandboxgym_learners.models import new_policy, saved_policy
from sandboxgym_learners.policy import PolicyError, Query
from sandboxgym_learners.tree import Group
from sandboxgym_learners.updates import read_updates
from tests.learners.test_writing import QUERIES, steps_of


def words(text: str) -> list[str]:
    return text.split()


WRITING = [
    *words("--tree.per-update 2 --tree.roots 2 --tree.siblings 2 --tree.rule first"),
    *words("--policy.answers text --policy.lora 4 --policy.checkpointing"),
    *words("--cloning.steps 0 --eval-every 2 --tree-every 1 --no-tensorboard --threads 1"),
    *words("--stop.least-entropy 0 --prompt.commands --prompt.actions 2"),
]
ERRANDS = [
    *words("--world.env tests.learners.errands:tests/Errands-v0 --world.arguments"),
    *words("--world.held-out split=test --world.train-tasks 4 --world.eval-tasks 1"),
    *words("--world.horizon 3"),
]


def no_texts():
    raise AssertionError("nothing has to be sampled for a model that reads bytes")


@pytest.fixture
def base(writer, tmp_path):
    """A folder with a tiny chat model."""
    writer.save(tmp_path / "base")
    return tmp_path / "base"


def run(out, base, *options: str) -> int:
    model = ["--policy.model", str(base), "--policy.tokens", "6", "--budget", "80"]
    return train.main([*WRITING, *ERRANDS, "--out", str(out), *model, *options])


def test_a_writing_policy_trains_its_adapter_and_resumes_to_the_same_bits(base, tmp_path):
    assert run(tmp_path / "whole", base, "--budget", "1000") == 0
    assert run(tmp_path / "parts", base, "--budget", "500") == 0
    assert run(tmp_path / "parts", base, "--budget", "1000", "--resume") == 0
    rows = read_updates(tmp_path / "whole")
    assert len(rows) > 2
    assert rows == read_updates(tmp_path / "parts")
    assert all(row.branch_points for row in rows[1:])
    adapters = [
        (tmp_path / run / "policy" / "adapter_model.safetensors").read_bytes()
        for run in ("whole", "parts")
    ]
    assert adapters[0] == adapters[1]
    assert not (tmp_path / "whole" / "policy" / "model.safetensors").exists()
    kept = json.loads((tmp_path / "whole" / "trees" / "000001.json").read_text())
    steps = list(Group.from_json(kept["tree"]).steps())
    assert all(step.written and step.text is not None for step in steps)
    assert all(step.entropy_of == "first token" and step.candidates == () for step in steps)
    assert "You can: go to shelf 1 | " in steps[0].prompt


def test_a_new_adapter_changes_nothing_and_a_saved_one_comes_back(base, tmp_path):
    config = PolicyConfig(model=str(base), answers="text", lora=4, tokens=6)
    plain, adapted = (
        new_policy(c, "command", no_texts, seed=0)
        for c in (PolicyConfig(model=str(base), answers="text"), config)
    )
    queries = [Query("Task: go.")]
    assert plain.consider(queries)[0].entropy == adapted.consider(queries)[0].entropy
    trained = adapted.weights()
    assert trained
    assert all("lora" in name for name in trained)
    with torch.no_grad():
        for parameter in trained.values():
            parameter.add_(0.1)
    moved = adapted.consider(queries)[0].entropy
    assert moved != plain.consider(queries)[0].entropy
    adapted.save(tmp_path / "saved")
    again = saved_policy(tmp_path / "saved", config, "command")
    assert again.consider(queries)[0].entropy == pytest.approx(moved, abs=1e-6)
    assert sum(p.numel() for p in again.weights().values()) == sum(
        p.numel() for p in trained.values()
    )


def gradients(policy, steps):
    policy.model.zero_grad()
    policy.judge(policy.recall(steps)).log_probs.sum().backward()
    return {name: p.grad for name, p in policy.model.named_parameters() if p.requires_grad}


def test_checkpointing_gives_the_same_gradients(writer):
    steps = steps_of(writer, QUERIES, range(2))
    plain = {name: g.clone() for name, g in gradients(writer, steps).items()}
    recompute_activations(writer.model)
    writer.recomputes = True
    calls = []
    writer.model.model.layers[0].mlp.register_forward_pre_hook(lambda *_: calls.append(1))
    again = gradients(writer, steps)
    assert len(calls) == 2, "nothing was computed again"
    assert not writer.model.training
    for name, gradient in plain.items():
        torch.testing.assert_close(gradient, again[name])
    writer.model.config.attention_dropout = 0.1
    with pytest.raises(PolicyError, match="dropout"):
        recompute_activations(writer.model)


def test_mixed_precision_computes_in_bfloat16_and_trains_in_float32(base):
    config = PolicyConfig(model=str(base), answers="text", precision="bfloat16", tokens=6)
    policy = new_policy(config, "command", no_texts, seed=0)
    assert policy.model.dtype == torch.float32
    assert policy.forward(input_ids=torch.tensor([[5, 6]])).logits.dtype == torch.bfloat16
    adapted = new_policy(PolicyConfig(**{**vars(config), "lora": 4}), "command", no_texts, seed=0)
    assert {p.dtype for p in adapted.weights().values()} == {torch.float32}
    frozen = {p.dtype for p in adapted.model.parameters() if not p.requires_grad}
    assert frozen == {torch.bfloat16}
    assert adapted.consider([Query("Task: go.")])[0].entropy > 0


def test_vllm_is_refused_where_it_cannot_be(base, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    config = PolicyConfig(model=str(base), answers="text", engine="vllm", lora=4)
    with pytest.raises(ImportError, match=r"sandboxgym\[vllm\]"):
        new_policy(config, "command", no_texts, seed=0)
    with pytest.raises(ConfigError, match=r"policy\.lora"):
        new_policy(PolicyConfig(**{**vars(config), "lora": 0}), "command", no_texts, seed=0)


def test_the_system_message_and_the_example_are_those_of_the_world(base):
    policy = new_policy(PolicyConfig(model=str(base), answers="text"), "shell", no_texts, seed=0)
    assert policy.config.system != COMMAND
    text = policy.tokenizer.decode(policy._prompt("Task: mend it."))
    assert "submit" in text
    shown = EXAMPLE["shell"]
    assert f"user\n{shown.prompt}<|im_end|>\n<|im_start|>assistant\n{shown.answer}<|im_" in text
    assert text.endswith("user\nTask: mend it.<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.parametrize(
    ("style", "action"),
    [("command", "take cup 1"), ("shell", "grep -rn greet ."), ("browser", "click('3')")],
)
def test_the_examples_are_in_the_form_that_is_asked_for(style, action):
    assert action_in(EXAMPLE[style].answer) == action
