"""A training step with verl's own parts: its agent-loop worker, its estimators, its policy loss.

    pip install "sandboxgym[verl]"
    python examples/verl_trees.py

On two cores there is no server of language models, so a small model answers in its place, and the
last lines are what verl's actor does with the batch. In a run of `verl.trainer.main_ppo` the loop
and the estimator are the same; `docs/integrations/verl.md` has the settings.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tiny
import torch
from hydra import compose, initialize_config_module
from omegaconf import DictConfig, OmegaConf
from tensordict import TensorDict
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
from verl.trainer.ppo import core_algos
from verl.trainer.ppo.ray_trainer import compute_advantage
from verl.workers.rollout.replica import TokenOutput

from sandboxgym.integrations.chat import chat_dialogue
from sandboxgym.integrations.growth import Plan
from sandboxgym.integrations.pieces import most_pieces
from sandboxgym.integrations.verl import estimator

PLAN: dict[str, Any] = {"roots": 2, "branch_at": [1], "members": 2, "max_decisions": 5}
ROWS = most_pieces(Plan(roots=2, branch_at=(1,), members=2))
LOOPS = [
    {
        "name": "sandbox_tree",
        "_target_": "sandboxgym.integrations.verl.loops.TreeAgentLoop",
        "sandbox": "sandboxgym/ALFWorld-v0",
        "arguments": {"source": "synthetic", "difficulty": "easy", "num_games": tiny.GAMES},
        "plan": PLAN,
        "turn_tokens": 16,
    }
]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class InProcess:
    """Answers where verl would ask its server of language models."""

    def __init__(self, model: Any) -> None:
        self.model = model

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any
    ) -> TokenOutput:
        """Draw an answer."""
        with torch.no_grad():
            out = self.model.generate(
                torch.tensor([prompt_ids]),
                do_sample=True,
                top_k=0,
                max_new_tokens=sampling_params["max_tokens"],
            )
        return TokenOutput(token_ids=out[0, len(prompt_ids) :].tolist())


def configuration(folder: Path) -> DictConfig:
    """The configuration of verl, with what a run with trees has to set."""
    OmegaConf.save(OmegaConf.create(LOOPS), folder / "loops.yaml")
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose(
            "ppo_trainer",
            overrides=[
                f"algorithm.adv_estimator={estimator.NAME}",
                "actor_rollout_ref.actor.loss_agg_mode=token-sum",
                f"actor_rollout_ref.rollout.n={ROWS}",
                f"actor_rollout_ref.rollout.agent.agent_loop_config_path={folder / 'loops.yaml'}",
                "actor_rollout_ref.rollout.prompt_length=1024",
                "actor_rollout_ref.rollout.response_length=512",
                "actor_rollout_ref.rollout.name=vllm",
                f"actor_rollout_ref.model.path={folder}",
            ],
        )


def clone(model: Any, tokenizer: Any, steps: int) -> None:
    """Teach the model the plans, in the format of `chat_dialogue`."""
    told, samples = chat_dialogue(tokenizer), []
    for turns in tiny.plans():
        tokens: list[int] = []
        said: list[bool] = []
        for number, (seen, command) in enumerate(turns):
            heard = (told.answer if number else told.opening)(seen, {})
            answer = tokenizer(command + tiny.END)["input_ids"]
            tokens += heard + answer
            said += [False] * len(heard) + [True] * len(answer)
        samples.append(tiny.Sample(tokens, said))
    print(f"cloned the plans: loss {tiny.clone(model, samples, steps=steps):.2f}")


def prompts() -> DataProto:
    """A batch as verl's trainer makes it: every prompt as many times as a tree has segments."""
    games = np.repeat(np.arange(tiny.GAMES), ROWS)
    return DataProto(
        batch=TensorDict({"index": torch.tensor(games)}, batch_size=len(games)),
        non_tensor_batch={
            "uid": np.array([f"game {game}" for game in games], dtype=object),
            "raw_prompt": filled([[] for _ in games]),
            "reset": filled([{"options": {"index": int(game)}} for game in games]),
            "agent_name": np.array(["sandbox_tree"] * len(games), dtype=object),
        },
        meta_info={"validate": False, "global_steps": 0},
    )


def filled(values: list[Any]) -> np.ndarray:
    """An array of objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def log_probs(model: Any, batch: Any) -> torch.Tensor:
    """The log π of every token of the responses."""
    length = batch["responses"].size(1)
    logits = model(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        position_ids=batch["position_ids"],
    ).logits[:, -length - 1 : -1]
    picked = torch.log_softmax(logits, -1).gather(-1, batch["responses"][..., None])
    return picked[..., 0]


def main(cloning: int = 16) -> dict[str, float]:
    """One training step; what it was made of."""
    folder = Path(tempfile.mkdtemp(prefix="verl_trees_"))
    tokenizer = tiny.build_tokenizer([*tiny.texts(), TEMPLATE])
    tokenizer.chat_template = TEMPLATE
    model = tiny.build_model(tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    config = configuration(folder)
    worker = AgentLoopWorker(config, InProcess(model))
    clone(model, worker.tokenizer, cloning)

    model.eval()
    data = asyncio.run(worker.generate_sequences(prompts()))
    data.batch["token_level_rewards"] = data.batch["rm_scores"]
    data = compute_advantage(data, estimator.NAME, config=config.algorithm)

    actor = config.actor_rollout_ref.actor
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    current = log_probs(model, data.batch)
    ratio = (current - current.detach()).exp()
    loss = core_algos.agg_loss(
        loss_mat=-data.batch["advantages"] * ratio,
        loss_mask=data.batch["response_mask"],
        loss_agg_mode=actor.loss_agg_mode,
    )
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), actor.grad_clip)
    optimizer.step()
    told = {
        "episode_return": float(np.mean(data.non_tensor_batch["episode_return"])),
        "credit": float(data.batch["advantages"].abs().amax()),
        "gradient": float(norm),
    }
    print(", ".join(f"{name} {value:.3g}" for name, value in told.items()))
    return told


if __name__ == "__main__":
    main()
