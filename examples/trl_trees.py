"""GRPO of TRL, on trees: every group of rows is one tree, every token has the credit of its branch.

pip install "sandboxgym[trl,learners]"
python examples/trl_trees.py
"""

from __future__ import annotations

import json
import tempfile

import tiny
from datasets import Dataset
from trl import GRPOConfig

from sandboxgym.integrations.growth import Plan
from sandboxgym.integrations.trl.rollouts import TreeRollouts
from sandboxgym.integrations.trl.trainer import TreeGRPOTrainer


def main(steps: int = 3) -> list[dict[str, float]]:
    """Train for some steps; what TRL logged."""
    model, tokenizer = tiny.cloned()
    plan = Plan(roots=2, branch_at=(1,), members=2, max_decisions=6, max_tokens=512)
    rollouts = TreeRollouts(tiny.make_env, tiny.dialogue(tokenizer), plan)
    # A prompt says how to reset; what the model reads is what the environment says then.
    prompts = [json.dumps({"options": {"index": game}}) for game in range(tiny.GAMES)]
    trainer = TreeGRPOTrainer(
        rollouts=rollouts,
        model=model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        args=GRPOConfig(
            output_dir=tempfile.mkdtemp(prefix="trl_trees_"),
            num_generations=plan.most_leaves,
            per_device_train_batch_size=plan.most_leaves * tiny.GAMES,
            max_completion_length=plan.max_tokens,
            generation_kwargs={"max_new_tokens": 16},  # of one turn
            loss_type="dr_grpo",  # the sum over tokens, divided by a constant
            beta=0.0,
            learning_rate=1e-3,
            max_steps=steps,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
            disable_tqdm=True,
        ),
    )
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "reward" in entry]
    for entry in logged:
        print(f"step {entry['step']}: return {entry['reward']:.2f}, loss {entry['loss']:+.2e}")
    return logged


if __name__ == "__main__":
    main()
