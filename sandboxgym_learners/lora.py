"""Training a small part of a model: low-rank adapters (LoRA) by `peft`, and what goes with them."""

from __future__ import annotations

from typing import Any

import torch

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym_learners.policy import PolicyError


def add_adapter(model: Any, rank: int, *, seed: int) -> Any:
    """Freeze a model and put an adapter on each of its linear layers but the last.

    The second half of an adapter starts at zero, so that the model answers as before.

    Args:
        model: A causal language model of transformers; it is changed.
        rank: Of the adapters; their scale is 2.
        seed: Decides the weights of their first half.
    """
    peft = import_peft()
    config = peft.LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        lora_dropout=0.0,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return peft.get_peft_model(model, config)


def load_adapter(model: Any, folder: Any) -> Any:
    """Put an adapter that was saved onto the model that it was made for, to train on."""
    return import_peft().PeftModel.from_pretrained(model, str(folder), is_trainable=True)


def import_peft() -> Any:
    """The package, or an error that says how to get it."""
    try:
        import peft
    except ImportError as error:
        raise MissingDependencyError(
            'LoRA needs peft: pip install "sandboxgym[lora]"; --policy.lora 0 trains all weights'
        ) from error
    return peft


def recompute_activations(model: Any) -> None:
    """Compute activations again in the backward pass, when in training mode, and keep none.

    Raises:
        PolicyError: The model has dropout, which would make it another model the second time.
    """
    drops = [m.p for m in model.modules() if isinstance(m, torch.nn.Dropout)]
    if any(drops) or (getattr(model.config, "attention_dropout", None) or 0) > 0:
        raise PolicyError(
            "gradient checkpointing needs a model without dropout: set the dropout of its "
            "configuration to 0, or leave --policy.checkpointing off"
        )
    options = {"use_reentrant": False}
    if hasattr(model, "activation_checkpointing_enable"):  # its name from some day after 5.17
        model.activation_checkpointing_enable(options)
    else:
        model.gradient_checkpointing_enable(options)
