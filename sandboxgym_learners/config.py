"""The configuration of a training run; `tyro` makes the command line from it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.algorithms import ALGORITHMS, Algorithm, CreditConfig, Schedule, Shape
from sandboxgym_learners.branching import warn_biased
from sandboxgym_learners.prompts import PromptFormat
from sandboxgym_learners.worlds import WorldConfig


class ConfigError(SandboxGymError, ValueError):
    """A value of the configuration is not possible."""


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
        device: Of torch, such as "cpu" or "cuda".
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


@dataclass(frozen=True)
class TrainConfig:
    """Train a policy on rollout trees of a text world.

    Attributes:
        out: The directory of the run; see `runlog` for what is written there.
        algo: "bpo", "rloo", "grpo", "ppo", "vineppo" or "paper".
        seed: Decides everything: the same configuration gives the same updates, bit for bit.
        budget: Compute after which training ends, in units of one environment step.
        token_price: What a generated token costs in this unit.
        eval_every: Updates between evaluations on held-out tasks; the last one has one always.
        tree_every: Updates between trees that are kept.
        checkpoint_every: Updates between checkpoints: what is lost at most when a run dies.
        threads: Threads of torch; another number may round differently.
        resume: Go on with the run in `out` from its last checkpoint.
        tensorboard: Write event files.
        start: A folder with a saved policy to start from as it is, such as `start` in the directory
            of another run; in place of `policy` and `cloning`.
        tree: The shape of what is collected.
        adaptive: How that is chosen for every update.
        credit: The options of the estimators.
        learning: How gradients become updates.
        critic: The critic.
        stop: When to give up.
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
    checkpoint_every: int = 1
    threads: int = 1
    resume: bool = False
    tensorboard: bool = True
    start: Path | None = None
    tree: TreeConfig = field(default_factory=TreeConfig)
    adaptive: AdaptiveConfig = field(default_factory=AdaptiveConfig)
    credit: CreditConfig = field(default_factory=CreditConfig)
    learning: LearningConfig = field(default_factory=LearningConfig)
    critic: CriticConfig = field(default_factory=CriticConfig)
    stop: StopConfig = field(default_factory=StopConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    cloning: CloningConfig = field(default_factory=CloningConfig)
    world: WorldConfig = field(default_factory=WorldConfig)
    prompt: PromptFormat = field(default_factory=PromptFormat)

    def __post_init__(self) -> None:
        if self.algo not in ALGORITHMS:
            raise ConfigError(f"no algorithm {self.algo!r}: choose among {', '.join(ALGORITHMS)}")
        usual = self.algorithm
        self._fill_in("tree", {**asdict(usual.shape), "rule": usual.rule})
        self._fill_in("learning", asdict(usual.schedule))
        values = self.to_dict()
        for name, least in _LEAST.items():
            value = _at(values, name)
            if value is not None and not value >= least:  # a NaN is neither
                raise ConfigError(f"{name} is {value}; it must be at least {least}")
        for name, most in _MOST.items():
            value = _at(values, name)
            if value is not None and not value <= most:
                raise ConfigError(f"{name} is {value}; it must be at most {most}")
        if self.policy.width % 8:
            raise ConfigError(f"policy.width is {self.policy.width}; it must be a multiple of 8")
        self._check_algorithm()

    def _fill_in(self, part: str, usual: dict[str, Any]) -> None:
        """Let the algorithm decide what a part of the configuration leaves open."""
        given = getattr(self, part)
        left_open = {name: value for name, value in usual.items() if getattr(given, name) is None}
        object.__setattr__(self, part, replace(given, **left_open))

    def _check_algorithm(self) -> None:
        """What does not go together."""
        shape = self.shape
        if self.algo != "bpo" and self.tree.branching == "adaptive":
            raise ConfigError(
                f"tree.branching=adaptive is for bpo; {self.algo} needs its own shape"
            )
        if self.tree.branching == "adaptive" and shape.max_branches != 1:
            raise ConfigError(
                "tree.branching=adaptive decides tree.max_branches itself: leave it 1"
            )
        if not self.algorithm.shape.branches and self.tree.max_branches:
            raise ConfigError(
                f"{self.algo} compares whole episodes: tree.max_branches must be 0; bpo branches"
            )
        if shape.roots > 1 or self.algorithm.critic:
            return
        if not shape.branches:
            raise ConfigError(f"{self.algo} compares episodes: tree.roots must be at least 2")
        if self.credit.mix != 1 or self.tree.branching == "adaptive":
            raise ConfigError(
                "credit.mix and tree.branching=adaptive compare roots: tree.roots must be at "
                "least 2"
            )
        warn_biased("tree.roots=1 gives the decisions before a branch point no signal: biased")

    @property
    def algorithm(self) -> Algorithm:
        """What `algo` names."""
        return ALGORITHMS[self.algo]

    @property
    def shape(self) -> Shape:
        """B, K and M."""
        tree = self.tree
        return Shape(_known(tree.roots), _known(tree.siblings), _known(tree.max_branches))

    @property
    def schedule(self) -> Schedule:
        """How the policy steps."""
        learning = self.learning
        return Schedule(
            _known(learning.rate), _known(learning.epochs), _known(learning.minibatches)
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        start = None if self.start is None else str(self.start)
        return {**asdict(self), "out": str(self.out), "start": start}


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
    "tree.threshold": 0,
    "tree.probability": 0,
    "adaptive.max_siblings": 2,
    "adaptive.max_roots": 2,
    "adaptive.margin": 0,
    "adaptive.probe_every": 1,
    "adaptive.first_updates": 1,
    "credit.backbone_share": 0,
    "credit.mix": 0,
    "credit.decay": 0,
    "credit.gamma": 0,
    "credit.trace": 0,
    "learning.rate": 0,
    "learning.warmup": 0,
    "learning.minibatches": 1,
    "learning.entropy": 0,
    "learning.clip": 0,
    "learning.max_norm": 0,
    "policy.width": 8,
    "policy.layers": 1,
    "policy.tokens": 1,
    "policy.prompt_tokens": 64,
    "policy.likely_tokens": 1,
    "policy.lora": 0,
    "world.horizon": 1,
    "world.workers": 0,
    "world.lanes": 1,
    "learning.epochs": 1,
    "learning.kl": 0,
    "critic.rate": 0,
    "critic.epochs": 1,
    "critic.minibatches": 1,
    "critic.width": 1,
    "critic.clip": 0,
    "stop.least_entropy": 0,
    "stop.patience": 1,
    "cloning.steps": 0,
    "cloning.tasks": 1,
    "cloning.batch": 1,
    "world.train_tasks": 1,
    "world.eval_tasks": 1,
    "world.eval_episodes": 1,
}


_MOST: dict[str, float] = {
    "tree.quantile": 1,
    "tree.smoothing": 0.999,
    "tree.probability": 1,
    "credit.backbone_share": 1,
    "credit.mix": 1,
    "credit.decay": 1,
    "credit.gamma": 1,
    "credit.trace": 1,
}


T = TypeVar("T")


def _known(value: T | None) -> T:
    """What `__post_init__` has filled in."""
    assert value is not None
    return value


def _at(values: dict[str, Any], path: str) -> Any:
    for name in path.split("."):
        values = values[name]
    return values
