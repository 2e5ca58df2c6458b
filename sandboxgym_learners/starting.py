"""The policy that training starts from: built, loaded, or made by another run."""

from __future__ import annotations

from pathlib import Path

from sandboxgym_learners.cloning import clone
from sandboxgym_learners.config import TrainConfig
from sandboxgym_learners.policy import PolicyError
from sandboxgym_learners.scoring import ScoringPolicy
from sandboxgym_learners.worlds import demonstrations, sample_texts


def load_policy(folder: Path) -> ScoringPolicy:
    """The policy that a run saved.

    Raises:
        PolicyError: There is none.
    """
    if not (folder / "config.json").is_file():
        raise PolicyError(
            f"{folder} holds no saved policy (it has no config.json): name a folder that a run "
            "wrote, such as RUN_DIR/start, RUN_DIR/best or RUN_DIR/policy"
        )
    return ScoringPolicy.load(folder)


def starting_policy(config: TrainConfig) -> ScoringPolicy:
    """The policy before the first update."""
    if config.start is not None:
        return load_policy(config.start)
    policy = _untrained(config)
    if config.cloning.steps:
        expert = config.world.make_expert()
        decisions = demonstrations(
            expert,
            range(config.cloning.tasks),
            config.prompt,
            detour=config.cloning.detour,
            seed=config.seed,
        )
        clone(policy, list(decisions), config.cloning, seed=config.seed)
    return policy


def _untrained(config: TrainConfig) -> ScoringPolicy:
    """The model that the configuration names, before the warm start."""
    world = config.world
    if config.policy.model == "tiny":
        tasks = range(min(world.train_tasks, config.cloning.tasks))
        texts = sample_texts(world.make_train(), tasks, config.prompt, seed=config.seed)
        return ScoringPolicy.tiny(
            texts, seed=config.seed, width=config.policy.width, layers=config.policy.layers
        )
    return ScoringPolicy.load(config.policy.model)
