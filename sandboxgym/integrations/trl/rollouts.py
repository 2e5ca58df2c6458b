"""Trees as TRL's `rollout_func`: each group of rows is one tree, grown on a sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sandboxgym.core.errors import SandboxGymError
from sandboxgym.core.forking import AnyEnv
from sandboxgym.integrations.growth import Dialogue, Plan, Row, Said, TokenTree


class GroupError(SandboxGymError, ValueError):
    """The prompts that TRL asked for are not whole groups of the size of a tree."""


Generate = Callable[[Any, list[list[int]]], list[Said]]
"""Goes on from some prompts in tokens, with the model of a trainer."""


def generate_with_trainer(trainer: Any, prompts: list[list[int]]) -> list[Said]:
    """One turn by the way that the trainer is configured for, be it transformers or vLLM.

    The length of a turn is `GRPOConfig(generation_kwargs={"max_new_tokens": ...})`, or else
    `max_completion_length`, which is that of an episode.
    """
    tokens, logprobs = trainer._generate_single_turn(prompts, None, {}, 1)
    if logprobs is None:  # TRL computes them itself where it needs them
        logprobs = [[0.0] * len(said) for said in tokens]
    return [Said(*said) for said in zip(tokens, logprobs, strict=True)]


@dataclass(frozen=True)
class TreeRollouts:
    """Grows one tree for every group of equal prompts. Give it to `TreeGRPOTrainer`.

    Attributes:
        make: Makes an environment.
        dialogue: How its episodes become tokens.
        plan: Where trees branch; `plan.most_leaves` has to be the trainer's `num_generations`.
        episode: Reads off a prompt how to reset: the keywords of `env.reset`. By default a prompt
            is JSON, such as '{"seed": 7}'. The model sees `dialogue.opening`, and not the prompt.
        generate: Lets the model speak.
    """

    make: Callable[[], AnyEnv]
    dialogue: Dialogue
    plan: Plan
    episode: Callable[[Any], dict[str, Any]] = json.loads
    generate: Generate = generate_with_trainer

    def __call__(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """What TRL asks a `rollout_func` for, with the credit of each token and the return."""
        env = self.make()
        try:
            rows = [
                row
                for prompt in self._groups(prompts)
                for row in self._filled(self._grow(env, self.episode(prompt), trainer), trainer)
            ]
        finally:
            env.close()
        return {
            "prompt_ids": [row.prompt for row in rows],
            "completion_ids": [row.tokens for row in rows],
            "logprobs": [row.logprobs for row in rows] if _knows_logprobs(trainer) else None,
            "env_mask": [row.mask for row in rows],
            "token_credits": [row.credits for row in rows],
            "episode_return": [row.total if row.path else None for row in rows],
        }

    def _groups(self, prompts: Sequence[Any]) -> list[Any]:
        """One prompt of every group."""
        size = self.plan.most_leaves
        groups = [prompts[i : i + size] for i in range(0, len(prompts), size)]
        for group in groups:
            if len(group) < size or any(prompt != group[0] for prompt in group):
                raise GroupError(
                    f"a tree has {size} leaves, and TRL asked for {len(prompts)} rows that are not "
                    f"groups of as many equal prompts: set num_generations={size}, and a batch of "
                    "each process (per_device_train_batch_size * steps_per_generation) that is a "
                    "multiple of it"
                )
        return [group[0] for group in groups]

    def _grow(self, env: AnyEnv, episode: dict[str, Any], trainer: Any) -> list[Row]:
        env.reset(**episode)
        with TokenTree(env, self.dialogue, self.plan) as tree:
            while prompts := tree.waiting():
                tree.advance(self.generate(trainer, prompts))
            return tree.rows()

    def _filled(self, rows: list[Row], trainer: Any) -> list[Row]:
        """As many rows as TRL expects: where episodes ended before they branched, empty ones."""
        end = trainer.processing_class.eos_token_id
        empty = Row(rows[0].prompt, [end], [0], [0.0], (), [0.0], 0.0)
        return rows + [empty] * (self.plan.most_leaves - len(rows))


def _knows_logprobs(trainer: Any) -> bool:
    return bool(getattr(trainer, "use_vllm", False))
