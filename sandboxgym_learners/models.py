"""From a configuration to a policy: the model, its adapter, its engine, on its device."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast

from sandboxgym_learners.chat import EXAMPLE, SYSTEM, Style, end_tokens
from sandboxgym_learners.config import ConfigError, PolicyConfig
from sandboxgym_learners.engines import Engine
from sandboxgym_learners.engines.huggingface import HuggingFaceEngine
from sandboxgym_learners.engines.vllm import VLLMEngine
from sandboxgym_learners.lora import add_adapter, load_adapter, recompute_activations
from sandboxgym_learners.placing import placed
from sandboxgym_learners.policy import Policy, PolicyError
from sandboxgym_learners.scoring import ScoringPolicy, pretrained, tiny_model
from sandboxgym_learners.smollm import smollm2
from sandboxgym_learners.tokenizer import build_tokenizer, byte_tokenizer
from sandboxgym_learners.writing import WritingConfig, WritingPolicy

_ADAPTER = "adapter_config.json"


def new_policy(
    config: PolicyConfig, style: Style, texts: Callable[[], Sequence[str]], *, seed: int
) -> Policy:
    """The policy that a configuration names, as it is before any training.

    Args:
        config: The configuration.
        style: Of the system message.
        texts: Gives texts of the world, for the vocabulary of a tiny model that chooses.
        seed: Decides random weights.
    """
    if config.model == "tiny":
        writes = config.answers == "text"
        tokenizer = byte_tokenizer() if writes else build_tokenizer(texts())
        model = tiny_model(tokenizer, seed=seed, width=config.width, layers=config.layers)
        base = ""
    else:
        base = str(smollm2()) if config.model == "smollm2-135m" else config.model
        model, tokenizer = _loaded(base)
    if config.lora:
        model = add_adapter(_frozen(model, config), config.lora, seed=seed)
    return _acting(model, tokenizer, config, style, base)


def saved_policy(folder: Path, config: PolicyConfig, style: Style) -> Policy:
    """A policy that `Policy.save` wrote: a whole model, or an adapter beside its base's name."""
    if not (folder / _ADAPTER).is_file():
        model, tokenizer = _loaded(str(folder))
        return _acting(model, tokenizer, config, style, str(folder))
    base = json.loads((folder / _ADAPTER).read_text(encoding="utf-8"))["base_model_name_or_path"]
    model, _ = _loaded(base)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    return _acting(load_adapter(_frozen(model, config), folder), tokenizer, config, style, base)


def _loaded(name: str) -> tuple[Any, Any]:
    try:
        return pretrained(name)
    except (OSError, ValueError) as error:
        here = "a folder that holds no whole model" if Path(name).is_dir() else "no folder here"
        raise PolicyError(
            f"{name!r} is {here}, and no model that transformers could get by that name: {error}"
        ) from error


def _frozen(model: Any, config: PolicyConfig) -> Any:
    """The weights that an adapter goes on, in the precision they are kept in."""
    return model.to(getattr(torch, config.precision))


def _acting(model: Any, tokenizer: Any, config: PolicyConfig, style: Style, base: str) -> Policy:
    """The policy around a model: how it acts, where, and how its gradient is computed."""
    model = placed(model, config.device)
    if config.checkpointing:
        recompute_activations(model)
    mixed = config.precision != "float32"
    if config.answers == "choice":
        return ScoringPolicy(model, tokenizer, mixed=mixed, recomputes=config.checkpointing)
    writing = WritingConfig(
        SYSTEM[style],
        config.tokens,
        config.prompt_tokens,
        config.entropy,
        config.likely_tokens,
        EXAMPLE[style],
    )
    engine = _engine(model, tokenizer, config, base, mixed=mixed)
    return WritingPolicy(
        model, tokenizer, engine, writing, mixed=mixed, recomputes=config.checkpointing
    )


def _engine(model: Any, tokenizer: Any, config: PolicyConfig, base: str, *, mixed: bool) -> Engine:
    if config.engine == "huggingface":
        return HuggingFaceEngine(model, ends=end_tokens(model, tokenizer), mixed=mixed)
    if not config.lora or not base:
        raise ConfigError(
            "policy.engine=vllm takes adapters from the learner: it needs policy.lora, and a "
            "model that is saved somewhere (policy.model)"
        )
    return VLLMEngine(base, model, rank=config.lora)
