"""The configuration of a training run; `tyro` makes the command line from it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.advantages import Estimator, grpo, nested_loo, rloo
from sandboxgym_learners.branching import warn_biased
from sandboxgym_learners.prompts import PromptFormat
from sandboxgym_learners.worlds import WorldConfig


class ConfigError(SandboxGymError, ValueError):
    """A value of the configuration is not possible."""


@dataclass(frozen=True)
class Algorithm:
    """What tells one algorithm from another; all else is the same loop.

    Attributes:
        estimator: Writes advantages and weights on a tree.
        branches: Whether backbones branch.
        roots: B, unless the configuration says otherwise.
    """

    estimator: Estimator
    branches: bool
    roots: int


ALGORITHMS = {
    "bpo": Algorithm(nested_loo, branches=True, roots=2),
    "rloo": Algorithm(rloo, branches=False, roots=16),
    "grpo": Algorithm(grpo, branches=False, roots=16),
}


@dataclass(frozen=True)
class TreeConfig:
    """The shape of what is collected.

    Attributes:
        per_update: Trees in an update, each of a task of its own.
        roots: B, independent episodes of a task; None for the algorithm's default.
        siblings: K, members of a group below the root.
        max_branches: M, branch points of a backbone.
        spacing: Decisions between two branch points of a backbone, at least.
        quantile: Where the entropy threshold lies among the decisions of earlier updates.
        smoothing: How much of the old threshold an update keeps.
    """

    per_update: int = 8
    roots: int | None = None
    siblings: int = 8
    max_branches: int = 1
    spacing: int = 1
    quantile: float = 0.8
    smoothing: float = 0.9


@dataclass(frozen=True)
class LearningConfig:
    """How gradients become updates.

    Attributes:
        rate: Learning rate of Adam.
        epochs: Passes over the trees of an update, one optimiser step each.
        clip: The ratio of new to old probability counts between 1 - clip and 1 + clip (PPO).
        kl: Weight of the divergence from the policy at the start.
        max_norm: Gradients longer than this are shortened to it.
    """

    rate: float = 1e-3
    epochs: int = 1
    clip: float = 0.2
    kl: float = 0.0
    max_norm: float = 1.0


@dataclass(frozen=True)
class PolicyConfig:
    """The model.

    Attributes:
        model: "tiny" for a small Qwen2 with random weights and a vocabulary from the training
            tasks; else a folder or name for `AutoModelForCausalLM.from_pretrained`.
        width: Hidden size of the tiny model.
        layers: Its number of layers.
    """

    model: str = "tiny"
    width: int = 64
    layers: int = 2


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
class TrainConfig:
    """Train a policy on rollout trees of a text world.

    Attributes:
        out: The directory of the run; see `runlog` for what is written there.
        algo: "bpo", "rloo" or "grpo".
        seed: Decides everything: the same configuration gives the same updates, bit for bit.
        budget: Compute after which training ends, in units of one environment step.
        token_price: What a generated token costs in this unit.
        eval_every: Updates between evaluations on held-out tasks; the last one has one always.
        tree_every: Updates between trees that are kept.
        checkpoint_every: Updates between checkpoints.
        threads: Threads of torch; another number may round differently.
        resume: Go on with the run in `out` from its last checkpoint.
        tensorboard: Write event files.
        tree: The shape of what is collected.
        learning: How gradients become updates.
        policy: The model.
        cloning: The warm start.
        world: The environment.
        prompt: What the policy reads.
    """

    out: Path
    algo: str = "bpo"
    seed: int = 0
    budget: float = 400_000
    token_price: float = 2.5
    eval_every: int = 5
    tree_every: int = 5
    checkpoint_every: int = 5
    threads: int = 1
    resume: bool = False
    tensorboard: bool = True
    tree: TreeConfig = field(default_factory=TreeConfig)
    learning: LearningConfig = field(default_factory=LearningConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    cloning: CloningConfig = field(default_factory=CloningConfig)
    world: WorldConfig = field(default_factory=WorldConfig)
    prompt: PromptFormat = field(default_factory=PromptFormat)

    def __post_init__(self) -> None:
        if self.algo not in ALGORITHMS:
            raise ConfigError(f"no algorithm {self.algo!r}: choose among {', '.join(ALGORITHMS)}")
        for name, least in _LEAST.items():
            value = _at(self.to_dict(), name)
            if value is not None and not value >= least:  # a NaN is neither
                raise ConfigError(f"{name} is {value}; it must be at least {least}")
        if not self.tree.quantile <= 1 or not self.tree.smoothing < 1:
            raise ConfigError("tree.quantile must be at most 1, and tree.smoothing below 1")
        if self.policy.width % 8:
            raise ConfigError(f"policy.width is {self.policy.width}; it must be a multiple of 8")
        if self.roots < 2:
            self._check_single_root()

    def _check_single_root(self) -> None:
        """With one root nothing above the first branch point can be compared with anything."""
        if not self.algorithm.branches:
            raise ConfigError(f"{self.algo} compares episodes: tree.roots must be at least 2")
        warn_biased("tree.roots=1 gives the decisions before a branch point no signal: biased")

    @property
    def algorithm(self) -> Algorithm:
        """What `algo` names."""
        return ALGORITHMS[self.algo]

    @property
    def roots(self) -> int:
        """B, the algorithm's default filled in."""
        return self.algorithm.roots if self.tree.roots is None else self.tree.roots

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {**asdict(self), "out": str(self.out)}


_LEAST: dict[str, float] = {
    "seed": 0,
    "budget": 0,
    "token_price": 0,
    "eval_every": 1,
    "tree_every": 1,
    "checkpoint_every": 1,
    "threads": 1,
    "tree.per_update": 1,
    "tree.roots": 1,
    "tree.siblings": 2,
    "tree.max_branches": 0,
    "tree.spacing": 1,
    "tree.quantile": 0,
    "tree.smoothing": 0,
    "learning.rate": 0,
    "learning.clip": 0,
    "learning.max_norm": 0,
    "policy.width": 8,
    "policy.layers": 1,
    "learning.epochs": 1,
    "learning.kl": 0,
    "cloning.steps": 0,
    "cloning.tasks": 1,
    "cloning.batch": 1,
    "world.train_tasks": 1,
    "world.eval_tasks": 1,
    "world.eval_episodes": 1,
}


def _at(values: dict[str, Any], path: str) -> Any:
    for name in path.split("."):
        values = values[name]
    return values
