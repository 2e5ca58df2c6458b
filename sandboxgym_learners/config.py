"""The configuration of a training run; `tyro` makes the command line from it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.algorithms import ALGORITHMS, Algorithm, CreditConfig, Schedule, Shape
from sandboxgym_learners.branching import warn_biased
from sandboxgym_learners.prompts import PromptFormat
from sandboxgym_learners.settings import (
    AdaptiveConfig,
    CloningConfig,
    CriticConfig,
    LearningConfig,
    PolicyConfig,
    StopConfig,
    TreeConfig,
)
from sandboxgym_learners.worlds import WorldConfig

__all__ = [
    "AdaptiveConfig",
    "CloningConfig",
    "ConfigError",
    "CriticConfig",
    "LearningConfig",
    "PolicyConfig",
    "StopConfig",
    "TrainConfig",
    "TreeConfig",
]


class ConfigError(SandboxGymError, ValueError):
    """A value of the configuration is not possible."""


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
        trackers: Further services that get the numbers, such as wandb; see `trackers`.
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
    trackers: tuple[str, ...] = ()
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
