"""The policy that training starts from: built, loaded, or made by another run."""

from __future__ import annotations

from pathlib import Path

from sandboxgym_learners.chat import Style
from sandboxgym_learners.cloning import clone
from sandboxgym_learners.config import PolicyConfig, TrainConfig
from sandboxgym_learners.models import new_policy, saved_policy
from sandboxgym_learners.policy import Policy, PolicyError
from sandboxgym_learners.scoring import ScoringPolicy
from sandboxgym_learners.worlds import demonstrations, sample_texts


def load_policy(
    folder: Path, config: PolicyConfig | None = None, style: Style = "command"
) -> Policy:
    """The policy that a run saved.

    Args:
        folder: Where it is.
        config: How it acts; None for one that chooses.
        style: Of the system message, for one that writes.

    Raises:
        PolicyError: There is none.
    """
    if not any((folder / name).is_file() for name in ("config.json", "adapter_config.json")):
        raise PolicyError(
            f"{folder} holds no saved policy: name a folder that a run wrote, such as "
            "RUN_DIR/start, RUN_DIR/best or RUN_DIR/policy"
        )
    return saved_policy(folder, config or PolicyConfig(), style)


def starting_policy(config: TrainConfig) -> Policy:
    """The policy before the first update."""
    world, face = config.world, config.world.face
    if config.start is not None:
        return load_policy(config.start, config.policy, face.style)
    tasks = range(min(world.train_tasks, config.cloning.tasks))
    policy = new_policy(
        config.policy,
        face.style,
        lambda: sample_texts(world.make_train(), tasks, config.prompt, face, seed=config.seed),
        seed=config.seed,
    )
    if config.cloning.steps and isinstance(policy, ScoringPolicy):
        decisions = demonstrations(
            world.make_expert(),
            range(config.cloning.tasks),
            config.prompt,
            face,
            detour=config.cloning.detour,
            seed=config.seed,
        )
        clone(policy, list(decisions), config.cloning, seed=config.seed)
    return policy
