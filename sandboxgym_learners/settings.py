"""The sections of a training run's configuration; `config.TrainConfig` holds one of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class TreeConfig:
    """The shape of what is collected, and where trees branch. None: as the algorithm usually does.

    Attributes:
        per_update: Trees in an update, each of a task of its own.
        roots: B, independent episodes of a task.
        siblings: K, members of a group below the root.
        max_branches: M, branch points of a backbone.
        branching: "fixed", or "adaptive" to choose B, K, and whether to branch at all, anew for
            every update (bpo).
        rule: Where to branch. "quantile": at the first decisions whose entropy reaches a quantile
            of earlier updates. "threshold": reaches a fixed number. "coin": at a depth with a fixed
            probability. "first": at the first decisions of all.
        spacing: Decisions between two branch points of a backbone, at least.
        quantile: Where the entropy threshold lies among the decisions of earlier updates.
        smoothing: How much of the old threshold an update keeps.
        threshold: The entropy for the rule "threshold", in nats.
        probability: For the rule "coin".
    """

    per_update: int = 8
    roots: int | None = None
    siblings: int | None = None
    max_branches: int | None = None
    branching: Literal["fixed", "adaptive"] = "fixed"
    rule: Literal["quantile", "threshold", "coin", "first"] | None = None
    spacing: int = 1
    quantile: float = 0.8
    smoothing: float = 0.9
    threshold: float = 0.5
    probability: float = 0.1


@dataclass(frozen=True)
class AdaptiveConfig:
    """How `tree.branching=adaptive` chooses the shape of the next update.

    Attributes:
        max_siblings: The largest K.
        max_roots: The largest B of a tree; independent episodes may be more.
        margin: By how much, as a share, another shape has to promise less variance for its cost.
        probe_every: Updates without branching before one that branches to see whether it pays now.
        first_updates: Updates that branch as configured before anything is chosen.
    """

    max_siblings: int = 16
    max_roots: int = 16
    margin: float = 0.1
    probe_every: int = 10
    first_updates: int = 5


@dataclass(frozen=True)
class LearningConfig:
    """How gradients become updates. None: as the algorithm usually does.

    Attributes:
        rate: Learning rate of Adam.
        warmup: Optimiser steps in which the rate grows to that. Without them the first steps, with
            nothing yet to average over, change a good start most.
        epochs: Passes over the decisions of an update.
        minibatches: Optimiser steps in a pass.
        clip: The ratio of new to old probability counts between 1 - clip and 1 + clip (PPO).
        kl: Weight of the divergence from the policy at the start.
        entropy: Weight of the entropy of the policy, a bonus that keeps it from being certain.
        max_norm: Gradients longer than this are shortened to it.
    """

    rate: float | None = None
    warmup: int = 10
    epochs: int | None = None
    minibatches: int | None = None
    clip: float = 0.2
    kl: float = 0.0
    entropy: float = 0.0
    max_norm: float = 1.0


@dataclass(frozen=True)
class CriticConfig:
    """The critic (ppo).

    Attributes:
        rate: Learning rate of Adam.
        epochs: Passes over the decisions of an update.
        minibatches: Optimiser steps in a pass.
        width: Hidden units of the value head.
        own_body: Give the critic a copy of the starting policy to read prompts with, and train
            that too. Otherwise it reads what the policy does, and leaves it alone.
        clip: A value may move so far from the old one within an update; None for no limit.
    """

    rate: float = 1e-3
    epochs: int = 4
    minibatches: int = 4
    width: int = 64
    own_body: bool = True
    clip: float | None = None


@dataclass(frozen=True)
class PolicyConfig:
    """The model, and how it acts.

    Attributes:
        model: "tiny" for a small Qwen2 with random weights, and a vocabulary from the training
            tasks or of bytes; "smollm2-135m" for the model that comes in a Python package; else a
            folder or name for `AutoModelForCausalLM.from_pretrained`.
        width: Hidden size of the tiny model.
        layers: Its number of layers.
        answers: "choice" among the commands that the environment admits, or "text" that is written
            by a chat model.
        engine: What writes: "huggingface", or "vllm" on a GPU.
        tokens: An answer has at most so many.
        prompt_tokens: A prompt has at most so many; the middle of a longer one is cut out.
        entropy: What stands in for the entropy of actions that are written; see `writing`.
        likely_tokens: How far the most likely answer is followed for that.
        lora: Rank of adapters to train in place of all weights; 0 to train all.
        precision: "bfloat16" keeps weights that are not trained so, and computes with those that
            are in mixed precision.
        checkpointing: Compute activations again for the gradient instead of keeping them.
        device: Of torch, such as "cpu" or "cuda"; "auto" to spread the model over all GPUs.
    """

    model: str = "tiny"
    width: int = 64
    layers: int = 2
    answers: Literal["choice", "text"] = "choice"
    engine: Literal["huggingface", "vllm"] = "huggingface"
    tokens: int = 96
    prompt_tokens: int = 1024
    entropy: Literal["first token", "likely text"] = "first token"
    likely_tokens: int = 16
    lora: int = 0
    precision: Literal["float32", "bfloat16"] = "float32"
    checkpointing: bool = False
    device: str = "cpu"


@dataclass(frozen=True)
class CloningConfig:
    """The warm start: behaviour cloning on the expert's walkthroughs of training tasks.

    Attributes:
        steps: Optimiser steps; 0 for no cloning.
        tasks: Uses the walkthroughs of training tasks 0 to this.
        batch: Decisions in a step.
        rate: Learning rate of Adam.
        detour: Most random actions before the expert takes over.
    """

    steps: int = 300
    tasks: int = 200
    batch: int = 32
    rate: float = 3e-3
    detour: int = 6


@dataclass(frozen=True)
class StopConfig:
    """When training gives up on a policy that has become certain of what does not work.

    Attributes:
        least_entropy: Mean entropy of a decision below which the policy counts as certain; 0 never.
        patience: Updates in a row that this must last.
        solved: Success from which certainty is no fault.
    """

    least_entropy: float = 0.01
    patience: int = 10
    solved: float = 0.9
