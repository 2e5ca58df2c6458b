"""Generation by vLLM, for GPUs. Optional, and imported when an engine is made.

vLLM keeps what it has read of a prompt (prefix caching), so that siblings share it without our
doing. Each continuation is a request of its own with a seed of its own.

The engine has weights of its own. With LoRA the adapter is saved after every update and named in
each request by a new number, since vLLM keeps what it has loaded under an old one. Training all
weights is not possible in this way.

The log-probabilities of vLLM and of the learner's model differ by their arithmetic; the learner
counts ratios from those that were recorded here.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym_learners.engines import Reading, Written

TOP = 20
"""The most likely tokens whose chances vLLM tells; entropies are computed from them."""


class VLLMEngine:
    """Writes with vLLM.

    Attributes:
        forward_tokens: Tokens of prompts and texts; what the prefix cache saved is not known.
    """

    def __init__(self, base: str, model: Any, *, rank: int, **options: Any) -> None:
        """Load a model into vLLM, and make a temporary folder for adapters: the last two are kept.

        Args:
            base: Name or folder of the model, adapters left out.
            model: The learner's model, a `PeftModel`.
            rank: Of the adapters.
            **options: For `vllm.LLM`, such as `gpu_memory_utilization`.

        Raises:
            MissingDependencyError: vLLM is not installed.
        """
        try:
            import vllm
            from vllm.lora.request import LoRARequest
        except ImportError as error:
            raise MissingDependencyError(
                'this engine needs vLLM and a GPU: pip install "sandboxgym[vllm]", or '
                "--policy.engine huggingface"
            ) from error
        self._sampling, self._lora_request = vllm.SamplingParams, LoRARequest
        options = {"enable_prefix_caching": True, "max_logprobs": TOP, **options}
        self._llm = vllm.LLM(model=base, enable_lora=True, max_lora_rank=max(rank, 8), **options)
        self._model = model
        self._folder = tempfile.TemporaryDirectory(prefix="sandboxgym-adapters-")
        self._adapters = Path(self._folder.name)  # goes with the engine, or at exit
        self._version = 0
        self.forward_tokens = 0
        self.weights_changed()

    def read(self, prompts: Sequence[Sequence[int]]) -> list[Reading]:
        """Read each prompt once, into the prefix cache."""
        outputs = self._generate(
            prompts, [self._sampling(max_tokens=1, temperature=0, logprobs=TOP)] * len(prompts)
        )
        self.forward_tokens += sum(map(len, prompts))
        return [
            Reading(_entropy(_chances(output.outputs[0].logprobs[0])), list(prompt))
            for prompt, output in zip(prompts, outputs, strict=True)
        ]

    def write(
        self,
        readings: Sequence[Reading],
        generators: Sequence[np.random.Generator | None],
        *,
        limit: int,
    ) -> list[Written]:
        """Continue each reading; see `Engine.write`. Generators give the seeds of requests."""
        outputs = self._generate(
            [reading.state for reading in readings],
            [self._request(generator, limit) for generator in generators],
        )
        texts = []
        for output in outputs:
            found = output.outputs[0]
            tokens = tuple(found.token_ids)
            chances = [_chances(place) for place in found.logprobs]
            texts.append(
                Written(
                    tokens,
                    tuple(
                        p[token].logprob for p, token in zip(found.logprobs, tokens, strict=True)
                    ),
                    tuple(map(_entropy, chances)),
                )
            )
            self.forward_tokens += len(tokens)
        return texts

    def weights_changed(self) -> None:
        """Save the adapter as it is now, and name it in requests from here on."""
        self._version += 1
        folder = self._adapters / f"{self._version:06d}"
        self._model.save_pretrained(folder)
        self._adapter = self._lora_request(folder.name, self._version, str(folder))
        forgotten = self._adapters / f"{self._version - 2:06d}"
        if forgotten.is_dir():
            shutil.rmtree(forgotten)

    def _request(self, generator: np.random.Generator | None, limit: int) -> Any:
        if generator is None:
            return self._sampling(max_tokens=limit, temperature=0.0, logprobs=TOP)
        seed = int(generator.integers(2**31))
        return self._sampling(
            max_tokens=limit, temperature=1.0, top_p=1.0, top_k=-1, seed=seed, logprobs=TOP
        )

    def _generate(self, prompts: Iterable[Sequence[int]], requests: Sequence[Any]) -> list[Any]:
        found: list[Any] = self._llm.generate(
            [{"prompt_token_ids": list(prompt)} for prompt in prompts],
            list(requests),
            use_tqdm=False,
            lora_request=self._adapter,
        )
        return found


def _chances(place: Any) -> list[float]:
    """The chances of the most likely tokens at a place of a text."""
    return sorted((math.exp(entry.logprob) for entry in place.values()), reverse=True)[:TOP]


def _entropy(chances: Sequence[float]) -> float:
    """Of a distribution whose most likely outcomes are known; the rest counts as one. Too low."""
    rest = 1 - sum(chances)
    return -sum(p * math.log(p) for p in [*chances, rest] if p > 0)
