"""With TRL itself: the gradient is that of the credits, and both examples train."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs TRL: pip install 'sandboxgym[trl,learners]'")
pytestmark = pytest.mark.peers

import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from trl import GRPOConfig  # noqa: E402

from sandboxgym.integrations.growth import Plan, Said  # noqa: E402
from sandboxgym.integrations.trl.rollouts import GroupError, TreeRollouts  # noqa: E402
from sandboxgym.integrations.trl.trainer import TreeGRPOTrainer  # noqa: E402
from tests.integrations.pages import run_page  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import tiny  # noqa: E402

PLAN = Plan(roots=2, branch_at=(1,), members=2, max_decisions=4, max_tokens=256)
RATE = 0.5


class Recorded(TreeRollouts):
    """Remembers what it gave to TRL."""

    given: dict

    def __call__(self, prompts, trainer):
        object.__setattr__(self, "given", super().__call__(prompts, trainer))
        return self.given


def prompts() -> list[str]:
    return [json.dumps({"options": {"index": game}}) for game in range(tiny.GAMES)]


def config(folder: Path, **further) -> GRPOConfig:
    return GRPOConfig(
        output_dir=str(folder),
        num_generations=PLAN.most_leaves,
        per_device_train_batch_size=PLAN.most_leaves * tiny.GAMES,
        max_completion_length=PLAN.max_tokens,
        generation_kwargs={"max_new_tokens": 16},
        loss_type="dr_grpo",
        beta=0.0,
        optim="sgd",
        learning_rate=RATE,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        max_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
        disable_tqdm=True,
        **further,
    )


def told(tokenizer):
    """The first root follows the plan, every other draws by its number: so returns differ."""
    plans = [[turn.command for turn in turns] for turns in tiny.plans()]
    calls = iter(range(1000))

    def generate(trainer, waiting):
        turn = next(calls)
        said = []
        for row in range(len(waiting)):
            game, step = divmod(turn, 4)
            command = plans[game][step] if row == 0 else f"look {row}"
            tokens = tokenizer(command + tiny.END)["input_ids"]
            said.append(Said(tokens, [0.0] * len(tokens)))
        return said

    return generate


def test_the_update_is_the_sum_of_credit_times_the_gradient_of_log_pi(tmp_path):
    tokenizer = tiny.build_tokenizer(tiny.texts())
    model = tiny.build_model(tokenizer)
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    rollouts = Recorded(tiny.make_env, tiny.dialogue(tokenizer), PLAN, generate=told(tokenizer))
    trainer = TreeGRPOTrainer(
        rollouts=rollouts,
        model=model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_dict({"prompt": prompts()}),
        args=config(tmp_path),
    )
    trainer.train()

    given = rollouts.given
    assert sorted(given["episode_return"]) == [0.0] * 6 + [1.0] * 2
    reference = tiny.build_model(tokenizer)
    reference.load_state_dict(before, strict=False)
    total = torch.zeros(())
    for prompt, said, mask, credit in zip(
        given["prompt_ids"],
        given["completion_ids"],
        given["env_mask"],
        given["token_credits"],
        strict=True,
    ):
        logits = reference(input_ids=torch.tensor([prompt + said])).logits[0, len(prompt) - 1 : -1]
        log_probs = torch.log_softmax(logits, -1)[range(len(said)), said]
        total = total + (log_probs * torch.tensor(credit) * torch.tensor(mask)).sum()
    (total / (len(given["prompt_ids"]) * PLAN.max_tokens)).backward()
    moved = 0.0
    for name, parameter in reference.named_parameters():
        expected = before[name] + RATE * parameter.grad
        found = dict(trainer.model.named_parameters())[name].detach()
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-4)
        moved += float((found - before[name]).abs().sum())
    assert moved > 0


def test_rows_that_are_no_whole_groups_are_refused():
    rollouts = TreeRollouts(tiny.make_env, tiny.dialogue(None), PLAN)
    with pytest.raises(GroupError, match="num_generations=4"):
        rollouts(["a", "a", "b", "b"], trainer=None)
    with pytest.raises(GroupError, match="num_generations=4"):
        rollouts(["a"] * 6, trainer=None)


def test_the_example_with_trees_trains():
    import trl_trees

    (logged,) = trl_trees.main(steps=1)
    assert logged["num_tokens"] > 0
    assert 0 <= logged["reward"] <= 1


def test_the_example_with_tools_trains_and_the_model_uses_them():
    import trl_tools

    (logged,) = trl_tools.main(steps=1)
    assert logged["tools/call_frequency"] > 1
    assert logged["tools/failure_frequency"] < 1


def test_the_examples_of_the_page_run(tmp_path):
    run_page("trl", tmp_path)
