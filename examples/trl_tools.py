"""GRPO of TRL, where the model plays a sandbox through tools: `act`, and `undo` on request.

pip install "sandboxgym[trl,learners]"
python examples/trl_tools.py
"""

from __future__ import annotations

import json
import tempfile
from typing import Any

import tiny
from datasets import Dataset
from transformers import PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen2_5_chat_template

from sandboxgym.integrations.trl.tools import sandbox_tools

TASK = "Do what is asked for.\n"


def tool_call(command: str) -> dict[str, Any]:
    """A message of the assistant that uses the tool."""
    call = {"type": "function", "function": {"name": "act", "arguments": {"command": command}}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def spelled(command: str) -> str:
    """The same as the template writes it, and as the model has to say it."""
    call = json.dumps({"name": "act", "arguments": {"command": command}})
    return f"<tool_call>\n{call}\n</tool_call>{tiny.END}"


def samples(tokenizer: PreTrainedTokenizerFast, tools: list[Any]) -> list[tiny.Sample]:
    """Every turn of the plans, as a conversation that ends with a use of the tool."""
    found = []
    for turns in tiny.plans():
        messages: list[dict[str, Any]] = [{"role": "user", "content": TASK + turns[0].seen}]
        for turn, after in zip(turns, [*turns[1:], None], strict=True):
            heard = tokenizer.apply_chat_template(
                messages, tools=tools, add_generation_prompt=True, return_dict=True
            )["input_ids"]
            said = tokenizer(spelled(turn.command))["input_ids"]
            found.append(tiny.Sample(heard + said, [False] * len(heard) + [True] * len(said)))
            if after is not None:
                result = {"role": "tool", "name": "act", "content": after.seen}
                messages += [tool_call(turn.command), result]
    return found


def main(steps: int = 2) -> list[dict[str, float]]:
    """Train for some steps; what TRL logged."""
    factory = sandbox_tools(tiny.make_env)
    tokenizer = tiny.build_tokenizer([*tiny.texts(), qwen2_5_chat_template, spelled("look")])
    tokenizer.chat_template = qwen2_5_chat_template
    model = tiny.build_model(tokenizer)
    loss = tiny.clone(model, samples(tokenizer, [factory().act]), steps=40)
    print(f"cloned the plans as uses of a tool: loss {loss:.2f}")
    rows = [
        {"prompt": [{"role": "user", "content": TASK}], "options": {"index": game}}
        for game in range(tiny.GAMES)
    ]
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        environment_factory=factory,
        train_dataset=Dataset.from_list(rows),
        args=GRPOConfig(
            output_dir=tempfile.mkdtemp(prefix="trl_tools_"),
            num_generations=4,
            per_device_train_batch_size=8,
            max_completion_length=512,
            max_tool_calling_iterations=5,
            generation_kwargs={"max_new_tokens": 48},
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
        print(
            f"step {entry['step']}: return {entry['reward']:.2f}, "
            f"{entry['tools/call_frequency']:.1f} uses of the tool an episode"
        )
    return logged


if __name__ == "__main__":
    main()
