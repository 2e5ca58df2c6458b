"""Sandboxes as tasks of verifiers: what to make, how to reset it, and the reward of a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.integrations.credit import RolloutTreeError

try:
    import verifiers.v1 as vf
except ImportError as error:
    raise MissingDependencyError(
        'these are tasks of verifiers: pip install "sandboxgym[verifiers]"'
    ) from error

GROWN = "sandbox"
"""Under this name the harness leaves in `trace.info` what it grew."""


class SandboxData(vf.TaskData):
    """One episode to be played.

    Attributes:
        sandbox: Id of the environment.
        arguments: For `gymnasium.make`.
        reset: For `env.reset`.
    """

    sandbox: str
    arguments: dict[str, Any] = {}
    reset: dict[str, Any] = {}


class SandboxTask(vf.Task[SandboxData]):
    """An episode; its reward is the mean return of the tree that the harness grew."""

    @vf.reward
    async def mean_return(self, trace: vf.Trace) -> float:
        """An unbiased estimate of what the policy returns."""
        if GROWN not in trace.info:
            raise RolloutTreeError(
                "no tree was grown to its end: play sandbox tasks with TreeHarness, and look for "
                f"what stopped it (stop condition: {trace.stop_condition})"
            )
        value: float = trace.info[GROWN]["mean_return"]
        return value


class SandboxConfig(vf.TasksetConfig):
    """Which episodes there are.

    Attributes:
        sandbox: Id of the environment.
        arguments: For `gymnasium.make`.
        episodes: How many there are, told apart by their seeds.
        first_seed: The seed of the first; the others follow.
        instructions: What the model reads before the first observation.
    """

    sandbox: str = "sandboxgym/ALFWorld-v0"
    arguments: dict[str, Any] = {}
    episodes: int = 100
    first_seed: int = 0
    instructions: str = "You act in a world of text. Answer with your next command, and no more."


class SandboxTaskset(vf.Taskset[SandboxTask, SandboxConfig]):
    """One episode a seed."""

    def load(self) -> Iterator[SandboxTask]:
        """All episodes."""
        config = self.config
        for seed in range(config.first_seed, config.first_seed + config.episodes):
            data = SandboxData(
                name=f"{config.sandbox} seed {seed}",
                prompt=config.instructions,
                sandbox=config.sandbox,
                arguments=config.arguments,
                reset={"seed": seed},
            )
            yield SandboxTask(data, config.task)
