"""Engines write text: one reads prompts once and writes any number of continuations of each.

`huggingface.HuggingFaceEngine` runs anywhere; `vllm.VLLMEngine` is for GPUs. A policy that writes
(`writing`) works with either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class Reading:
    """A prompt that was read.

    Attributes:
        entropy: That of the first token after it, in nats.
        state: For the engine itself.
    """

    entropy: float
    state: Any


@dataclass(frozen=True, slots=True)
class Written:
    """A continuation: its tokens, the end included if it came to one.

    Attributes:
        tokens: The tokens.
        logprobs: The log-probability of each.
        entropies: The entropy of the distribution that each was drawn from, in nats.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    entropies: tuple[float, ...]


class Engine(Protocol):
    """Reads and writes tokens.

    Attributes:
        forward_tokens: How many tokens went through the model so far.
    """

    forward_tokens: int

    def read(self, prompts: Sequence[Sequence[int]]) -> list[Reading]:
        """Read each prompt once."""

    def write(
        self,
        readings: Sequence[Reading],
        generators: Sequence[np.random.Generator | None],
        *,
        limit: int,
    ) -> list[Written]:
        """Continue each reading, of which any may occur many times, by up to `limit` tokens.

        Args:
            readings: What `read` gave.
            generators: What draws the tokens of each, at temperature 1 with nothing cut off; None
                for the most likely token every time.
            limit: Tokens after which a continuation ends even if it has not come to its end.
        """

    def weights_changed(self) -> None:
        """Write with the model as it is now."""
