"""What the collector and the learner ask of a policy, whatever it is made of.

A decision has two halves. First the policy *considers* what it reads: everything that is known
before an action is drawn, above all the entropy by which a rule decides whether to branch. Then it
*draws*: any number of members of a group from one outlook, each from a generator of its own. The
learner later asks for the probabilities of what was drawn, with a gradient.

`scoring.ScoringPolicy` chooses among admissible commands; `writing.WritingPolicy` writes text.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.tree import Step

BATCH_TOKENS = 4096
"""Tokens, padding included, that go through the model at once; more is no faster on a CPU."""


class PolicyError(SandboxGymError, ValueError):
    """The model or tokenizer cannot serve as a policy, or was asked something it cannot answer."""


class Query(NamedTuple):
    """What to decide: a prompt, and the commands to choose among (none for free text)."""

    prompt: str
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a policy knows of a decision before it draws.

    Attributes:
        query: What it was asked.
        entropy: An entropy of its next action, in nats.
        entropy_of: Of what exactly: "commands", "first token" or "likely text".
        state: For the policy itself: what it draws from.
    """

    query: Query
    entropy: float
    entropy_of: str
    state: Any


@dataclass(frozen=True, slots=True)
class Act:
    """An action that was drawn.

    Attributes:
        action: As given to the environment.
        logprob: log π(action | prompt).
        tokens: How many tokens it has.
        choice: Its index among the candidates; -1 for free text.
        text: All that was written, the thought included; empty for a choice.
        written: The tokens of the text.
        written_logprobs: The log-probability of each.
    """

    action: str
    logprob: float
    tokens: int
    choice: int = -1
    text: str = ""
    written: tuple[int, ...] = ()
    written_logprobs: tuple[float, ...] = ()


class Taken(Protocol):
    """A decision that was taken, in tokens: what the learner hands back to be judged."""

    @property
    def prompt(self) -> Sequence[int]:
        """The tokens in front of the action."""

    @property
    def length(self) -> int:
        """How many tokens go through the model."""


class Judgement(NamedTuple):
    """What a policy says now of decisions that were taken, a row each, with gradient.

    Attributes:
        log_probs: log π of what was drawn, in the parts that it was drawn in: one for a choice,
            one a token for a text. 0 where a row has no further part.
        parts: Where there is a part.
        entropy: The entropy of every decision; for a text the sum of those of its tokens.
        rows: For `Policy.divergence` alone.
    """

    log_probs: Tensor
    parts: Tensor
    entropy: Tensor
    rows: Tensor


class Policy(ABC):
    """A causal language model that acts, always in evaluation mode (no dropout).

    Attributes:
        model: The model, of the kind of transformers.
        tokenizer: Its tokenizer.
        mixed: Whether the model computes in bfloat16 where that is safe.
        recomputes: Whether it is set up to compute activations again (`lora`).
        forward_tokens: How many tokens went through the model so far in order to act.
        chooses: Whether it chooses among candidates, which a query then has to have.
    """

    chooses = True

    def __init__(
        self, model: Any, tokenizer: Any, *, mixed: bool = False, recomputes: bool = False
    ) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.mixed = mixed
        self.recomputes = recomputes
        self.forward_tokens = 0

    @abstractmethod
    def consider(self, queries: Sequence[Query]) -> list[Outlook]:
        """What is known of each decision before its action is drawn."""

    @abstractmethod
    def draw(
        self, outlooks: Sequence[Outlook], generators: Sequence[np.random.Generator]
    ) -> list[Act]:
        """An action for each outlook, which may occur many times, by a generator of its own.

        Temperature 1 and nothing cut off. What is drawn does not depend on what is drawn beside
        it, up to the rounding of the model's arithmetic.
        """

    @abstractmethod
    def recall(self, steps: Sequence[Step]) -> Sequence[Taken]:
        """Decisions of a tree, in tokens."""

    @abstractmethod
    def judge(self, taken: Sequence[Any]) -> Judgement:
        """What the model says now of decisions that `recall` gave."""

    @abstractmethod
    def divergence(self, rows: Tensor, reference: Tensor) -> Tensor:
        """KL(π ‖ reference) of every decision, from `Judgement.rows` of both."""

    def features(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """The last hidden state at the end of every prompt, with gradient: what a critic reads."""
        tokens, there = left_padded(prompts, self.pad)
        output = self.forward(
            input_ids=tokens.to(self.model.device),
            attention_mask=there.to(self.model.device),
            position_ids=positions(there).to(self.model.device),
            use_cache=False,
            output_hidden_states=True,
            logits_to_keep=1,
        )
        last: Tensor = output.hidden_states[-1][:, -1]
        return last.float()

    def weights_changed(self) -> None:  # noqa: B027 -- most policies have nothing to do then
        """Tell the policy that the learner has changed the model."""

    def forward(self, **inputs: Any) -> Any:
        """Run the model."""
        # Activations are computed again for a gradient only in training mode. There is no dropout.
        again = self.recomputes and torch.is_grad_enabled()
        if again:
            self.model.train()
        with mixing(self.model.device, self.mixed):
            output = self.model(**inputs)
        if again:
            self.model.eval()
        return output

    def weights(self) -> dict[str, Tensor]:
        """The weights that are trained, by name."""
        return {name: p.detach() for name, p in self.model.named_parameters() if p.requires_grad}

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Take on weights that `weights` gave."""
        with torch.no_grad():
            for name, parameter in self.weights().items():
                parameter.copy_(weights[name])
        self.weights_changed()

    def save(self, folder: str | Path) -> None:
        """Write the model, or its adapter, and its tokenizer in the format of transformers."""
        self.model.save_pretrained(folder)
        self.model.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    @property
    def pad(self) -> int:
        """The token that fills up rows; nothing ever sees it."""
        for token in (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        return 0


def mixing(device: torch.device, mixed: bool) -> AbstractContextManager[Any]:
    """A context in which a model computes in bfloat16 where that is safe, if it is to."""
    return torch.autocast(device.type, torch.bfloat16) if mixed else nullcontext()


def left_padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[Tensor, Tensor]:
    """Rows of tokens, filled up on the left, and a mask of what is no filling."""
    longest = max(len(row) for row in rows)
    tokens = torch.full((len(rows), longest), pad)
    there = torch.zeros((len(rows), longest), dtype=torch.long)
    for place, row in enumerate(rows):
        if row:
            tokens[place, -len(row) :] = torch.tensor(row)
            there[place, -len(row) :] = 1
    return tokens, there


def positions(there: Tensor) -> Tensor:
    """The place of every token in its row, filling not counted; 0 for filling in front."""
    return (there.cumsum(1) - 1).clamp(min=0)


def batches(lengths: Sequence[int], *, tokens: int | None = None) -> Iterator[list[int]]:
    """Indices in batches of similar length, each within so many tokens (`BATCH_TOKENS`)."""
    limit = BATCH_TOKENS if tokens is None else tokens
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and (len(batch) + 1) * lengths[i] > limit:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def minibatches(
    count: int, *, parts: int, epochs: int, seed: tuple[int, int]
) -> Iterator[list[int]]:
    """Indices of decisions in so many parts a pass, in a new order in every pass."""
    dice = np.random.default_rng(seed)
    size = max(1, math.ceil(count / parts))
    for _ in range(epochs):
        order = dice.permutation(count).tolist()
        yield from (order[start : start + size] for start in range(0, count, size))


def entropy(log_probs: NDArray[np.float64]) -> float:
    """H of a distribution in nats."""
    possible = log_probs[np.isfinite(log_probs)]
    return float(-np.sum(np.exp(possible) * possible))


def draw(log_probs: NDArray[np.float64], generator: np.random.Generator) -> int:
    """Draw an index at temperature 1."""
    reached = np.cumsum(np.exp(log_probs))
    return int(np.searchsorted(reached[:-1], generator.random() * reached[-1], side="right"))
