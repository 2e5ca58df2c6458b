"""A policy that writes its actions: a thought and an action, in free text, by a chat model.

What was written is kept in tokens, each with the log-probability it was drawn with, so that the
learner computes its probability again from the same tokens, never from text that could be split
otherwise. The action of the policy is the whole text: π(text | prompt) is the product over its
tokens, the thought's included.

The entropy of such a policy over its actions cannot be computed. Two stand-ins are known before
anything is drawn, and `Step.entropy_of` says which one it was:

- "first token": H of the first token. It costs nothing, and says little of the action where every
  answer begins with the same word.
- "likely text": the mean entropy of the tokens along the most likely answer. It costs the writing
  of one.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sandboxgym_learners.chat import COMMAND, Example, action_in, chat_tokens
from sandboxgym_learners.engines import Engine
from sandboxgym_learners.policy import (
    Act,
    Judgement,
    Outlook,
    Policy,
    Query,
    left_padded,
    positions,
)
from sandboxgym_learners.tree import Step


@dataclass(frozen=True)
class WritingConfig:
    """How a policy writes.

    Attributes:
        system: The system message.
        tokens: An answer has at most so many.
        prompt_tokens: A prompt has at most so many; the middle of a longer one is cut out.
        entropy: What stands in for the entropy of actions; see `writing`.
        likely_tokens: How far the most likely answer is followed for that.
        example: An exchange in front of the prompt that shows the form of an answer.
    """

    system: str = COMMAND
    tokens: int = 96
    prompt_tokens: int = 1024
    entropy: Literal["first token", "likely text"] = "first token"
    likely_tokens: int = 16
    example: Example | None = None


class Answer(NamedTuple):
    """A prompt and what was written after it, in tokens."""

    prompt: list[int]
    written: tuple[int, ...]

    @property
    def length(self) -> int:
        """How many tokens go through the model."""
        return len(self.prompt) + len(self.written)


class WritingPolicy(Policy):
    """Writes with an engine, and judges what was written by the model itself."""

    chooses = False

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        engine: Engine,
        config: WritingConfig | None = None,
        *,
        mixed: bool = False,
        recomputes: bool = False,
    ) -> None:
        super().__init__(model, tokenizer, mixed=mixed, recomputes=recomputes)
        self.engine = engine
        self.config = config or WritingConfig()

    def consider(self, queries: Sequence[Query]) -> list[Outlook]:
        """Read every prompt once."""
        readings = self.engine.read([self._prompt(query.prompt) for query in queries])
        entropies = [reading.entropy for reading in readings]
        if self.config.entropy == "likely text":
            likely = self.engine.write(
                readings, [None] * len(readings), limit=self.config.likely_tokens
            )
            entropies = [statistics.fmean(text.entropies) for text in likely]
        self.forward_tokens = self.engine.forward_tokens
        return [
            Outlook(query, entropy, self.config.entropy, reading)
            for query, entropy, reading in zip(queries, entropies, readings, strict=True)
        ]

    def draw(
        self, outlooks: Sequence[Outlook], generators: Sequence[np.random.Generator]
    ) -> list[Act]:
        """Write an answer for each outlook."""
        texts = self.engine.write(
            [outlook.state for outlook in outlooks], generators, limit=self.config.tokens
        )
        self.forward_tokens = self.engine.forward_tokens
        acts = []
        for written in texts:
            text = self.tokenizer.decode(written.tokens, skip_special_tokens=True)
            acts.append(
                Act(
                    action=action_in(text),
                    logprob=sum(written.logprobs),
                    tokens=len(written.tokens),
                    text=text,
                    written=written.tokens,
                    written_logprobs=written.logprobs,
                )
            )
        return acts

    def recall(self, steps: Sequence[Step]) -> list[Answer]:
        """Decisions of a tree, in tokens."""
        return [Answer(self._prompt(step.prompt), step.written) for step in steps]

    def judge(self, taken: Sequence[Answer]) -> Judgement:
        """The log π of every token that was written; their sums are `Judgement.rows`."""
        device = self.model.device
        prompts, there = left_padded([answer.prompt for answer in taken], self.pad)
        longest = max(len(answer.written) for answer in taken)
        written = torch.full((len(taken), longest), self.pad)
        parts = torch.zeros((len(taken), longest), dtype=torch.long)
        for row, answer in enumerate(taken):
            written[row, : len(answer.written)] = torch.tensor(answer.written)
            parts[row, : len(answer.written)] = 1
        there = torch.cat([there, parts], dim=1)
        logits = self.forward(
            input_ids=torch.cat([prompts, written], dim=1).to(device),
            attention_mask=there.to(device),
            position_ids=positions(there).to(device),
            use_cache=False,
            logits_to_keep=longest + 1,
        ).logits[:, :-1]
        written, parts = written.to(device), parts.to(device)
        every = torch.log_softmax(logits.float(), dim=-1)
        log_probs = every.gather(2, written[:, :, None])[:, :, 0] * parts
        entropy = (-(every.exp() * every).sum(2) * parts).sum(1)
        return Judgement(log_probs, parts, entropy, log_probs.sum(1))

    def divergence(self, rows: Tensor, reference: Tensor) -> Tensor:
        """½ (log π - log reference)² of each text: its gradient is that of KL(π ‖ reference).

        That is so in expectation over texts that π has written. The value itself is the divergence
        to second order only.
        """
        return (rows - reference).square() / 2

    def weights_changed(self) -> None:
        """Let the engine write with the new weights."""
        self.engine.weights_changed()

    def _prompt(self, prompt: str) -> list[int]:
        config = self.config
        return chat_tokens(
            self.tokenizer,
            config.system,
            prompt,
            limit=config.prompt_tokens,
            example=config.example,
        )
