"""`--dry-run`: what a configuration will need, before it needs it.

The model is built with the shapes of the real one but without memory for its weights (the device
"meta" of torch), and given its adapters. A prompt of the world goes through collation, the model
and the loss. Then comes an estimate of the memory. No network is used: the shapes of large models
are written here as numbers. Their tokenizers are not, so that prompts are counted in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, Qwen2Config

from sandboxgym_learners import policy as batching
from sandboxgym_learners.chat import SYSTEM
from sandboxgym_learners.config import TrainConfig
from sandboxgym_learners.engines.huggingface import HuggingFaceEngine
from sandboxgym_learners.lora import add_adapter
from sandboxgym_learners.policy import PolicyError
from sandboxgym_learners.smollm import smollm2
from sandboxgym_learners.tokenizer import byte_tokenizer
from sandboxgym_learners.tree import Step
from sandboxgym_learners.worlds import start
from sandboxgym_learners.writing import WritingConfig, WritingPolicy

GIB = 2**30


def shape_of(model: str) -> Any:
    """The configuration of a model, for transformers."""
    if model == "Qwen/Qwen2.5-7B-Instruct":
        return Qwen2Config(
            vocab_size=152064,
            hidden_size=3584,
            intermediate_size=18944,
            num_hidden_layers=28,
            num_attention_heads=28,
            num_key_value_heads=4,
            max_position_embeddings=32768,
            rope_parameters={"rope_type": "default", "rope_theta": 1e6},
            rms_norm_eps=1e-6,
            tie_word_embeddings=False,
        )
    if model == "meta-llama/Llama-3.1-8B-Instruct":
        return LlamaConfig(
            vocab_size=128256,
            hidden_size=4096,
            intermediate_size=14336,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=8,
            max_position_embeddings=131072,
            rope_parameters={
                "rope_type": "llama3",
                "rope_theta": 5e5,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192,
            },
            rms_norm_eps=1e-5,
            tie_word_embeddings=False,
        )
    try:
        return AutoConfig.from_pretrained(smollm2() if model == "smollm2-135m" else model)
    except (OSError, ValueError) as error:
        raise PolicyError(f"the shape of {model} is not known: {error}") from error


@dataclass(frozen=True)
class Estimate:
    """What a run needs; memory in bytes.

    Attributes:
        parameters: Weights of the model, without adapters.
        trained: Weights that are trained.
        prompt_tokens: Of the first prompt, in bytes of text.
        sequence: The shape of what went through the model for one decision of siblings.
        weights: Memory for all weights.
        optimiser: For gradients and the two moments of Adam.
        activations: For the gradient of one batch.
        logits: For that of its written tokens.
        cache: For keys and values of prompts that are read together.
        engine: For weights of an engine of its own.
        reference: For the policy of the start, where there is a KL term.
    """

    parameters: int
    trained: int
    prompt_tokens: int
    sequence: tuple[int, ...]
    weights: int
    optimiser: int
    activations: int
    logits: int
    cache: int
    engine: int
    reference: int

    @property
    def total(self) -> int:
        """All memory together."""
        parts = (self.weights, self.optimiser, self.activations, self.logits)
        return sum(parts) + self.cache + self.engine + self.reference

    def __str__(self) -> str:
        def gib(value: int) -> str:
            return f"{value / GIB:8.2f} GiB"

        lines = [
            f"{self.parameters:,} parameters, {self.trained:,} of them or beside them are trained",
            f"first prompt: {self.prompt_tokens} bytes; siblings collated to {self.sequence}",
            f"weights      {gib(self.weights)}",
            f"gradient     {gib(self.optimiser)}  with the moments of Adam",
            f"activations  {gib(self.activations)}  of a batch of {batching.BATCH_TOKENS} tokens",
            f"logits       {gib(self.logits)}  of its written tokens",
            f"keys, values {gib(self.cache)}  of prompts that are read together",
            f"engine       {gib(self.engine)}  weights of vLLM",
            f"reference    {gib(self.reference)}  for the KL term",
            f"in all       {gib(self.total)}",
        ]
        return "\n".join(lines)


def estimate(config: TrainConfig) -> Estimate:
    """Go through the motions, and say what they would take.

    Raises:
        PolicyError: The shape of the model is not known, or it chooses rather than writes.
    """
    chosen = config.policy
    if chosen.answers != "text" or chosen.model == "tiny":
        raise PolicyError("a dry run is for large models: --policy.answers text and --policy.model")
    shape = shape_of(chosen.model)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            shape,
            attn_implementation="eager",  # others look at the values of masks, which are not there
        )
    parameters = sum(p.numel() for p in model.parameters())
    size = 2 if chosen.lora and chosen.precision == "bfloat16" else 4
    if chosen.lora:
        with torch.device("meta"):
            model = add_adapter(model, chosen.lora, seed=config.seed)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    prompt, sequence = _through(model, config)
    adapters = trained if chosen.lora else 0
    written = min(1.0, chosen.tokens / (chosen.prompt_tokens + chosen.tokens))
    cached = HuggingFaceEngine(model, ends=[]).batch_tokens if chosen.engine != "vllm" else 0
    heads = getattr(shape, "head_dim", None) or shape.hidden_size // shape.num_attention_heads
    computing = 2 if chosen.precision == "bfloat16" else 4
    return Estimate(
        parameters=parameters,
        trained=trained,
        prompt_tokens=prompt,
        sequence=sequence,
        weights=parameters * size + adapters * 4,
        optimiser=trained * 12,
        activations=_activations(shape, kept=not chosen.checkpointing, size=computing),
        logits=int(batching.BATCH_TOKENS * written * shape.vocab_size * 4 * 3),
        cache=cached * shape.num_hidden_layers * shape.num_key_value_heads * heads * 2 * computing,
        engine=parameters * 2 if chosen.engine == "vllm" else 0,
        reference=parameters * size if config.learning.kl else 0,
    )


def _through(model: Any, config: TrainConfig) -> tuple[int, tuple[int, ...]]:
    """Collate siblings behind the first prompt of the world, and let the model judge them."""
    face = config.world.face
    env = config.world.make_train()
    try:
        episode, info = start(env, 0, face)
    finally:
        env.close()
    prompt = episode.prompt(config.prompt, info.get("admissible_commands", ()))
    tokens = config.policy.prompt_tokens
    policy = WritingPolicy(
        model,
        byte_tokenizer(),
        HuggingFaceEngine(model, ends=[]),
        WritingConfig(SYSTEM[face.style], config.policy.tokens, tokens),
    )
    siblings = config.shape.siblings
    step = Step(prompt, (), -1, "", 0.0, 0.0, 0.0, "", 0, written=(1,) * config.policy.tokens)
    taken = policy.recall([step] * siblings)
    judged = policy.judge(taken)
    judged.log_probs.sum().backward()  # type: ignore[no-untyped-call]
    return len(taken[0].prompt), (siblings, taken[0].length)


def _activations(shape: Any, *, kept: bool, size: int) -> int:
    """What is kept for the gradient: of every layer its input, or all that it computes.

    With attention that does not keep its scores, a layer computes about eight times its width and
    three times that of its middle for every token.
    """
    inside = 8 * shape.hidden_size + 3 * shape.intermediate_size
    a_layer = batching.BATCH_TOKENS * inside * size
    inputs = batching.BATCH_TOKENS * shape.hidden_size * size * shape.num_hidden_layers
    return int(a_layer * shape.num_hidden_layers if kept else inputs + a_layer)
