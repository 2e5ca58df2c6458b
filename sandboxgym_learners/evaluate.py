"""`python -m sandboxgym_learners.evaluate RUN_DIR`: play what a run learned, on any tasks.

    python -m sandboxgym_learners.evaluate runs/bpo-0 --arguments source=real split=valid_seen

What the run's configuration says of the world, prompts and policy holds; `--arguments` go to the
environment after those of its held-out tasks, and so replace what has the same name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import torch
import tyro

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.collect import Collector
from sandboxgym_learners.config import PolicyConfig
from sandboxgym_learners.prompts import PromptFormat
from sandboxgym_learners.report.curves import interval
from sandboxgym_learners.runlog import saved_config
from sandboxgym_learners.starting import load_policy
from sandboxgym_learners.summary import episode_steps
from sandboxgym_learners.tree import Group
from sandboxgym_learners.worlds import WorldConfig

Part = TypeVar("Part")

TASKS_AT_ONCE = 32
"""Episodes of so many tasks go on together; more would only need more memory."""


class EvaluationError(SandboxGymError, ValueError):
    """There is nothing to evaluate, or not in this way."""


@dataclass(frozen=True)
class EvaluateConfig:
    """Play episodes with a policy that a run saved, and say how many succeed.

    Attributes:
        run: The run directory.
        policy: "policy" is what came out, "best" what did best on the held-out tasks, "start" what
            training began with.
        arguments: Arguments of the environment ("name=value"), after those of the run.
        tasks: Each of tasks 0 to this is played,
        episodes: so many times.
        horizon: Steps after which an episode is cut off; None for that of the run.
        seed: Of the draws.
        threads: That compute the policy.
    """

    run: Annotated[Path, tyro.conf.Positional]
    policy: Literal["policy", "best", "start"] = "policy"
    arguments: tuple[str, ...] = ()
    tasks: int = 60
    episodes: int = 1
    horizon: int | None = None
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("tasks", "episodes", "threads"):
            if getattr(self, name) < 1:
                raise EvaluationError(f"{name} is {getattr(self, name)}; it must be at least 1")


@dataclass(frozen=True)
class Evaluation:
    """What came of it.

    Attributes:
        success: Share of episodes that solved their task, between 0 and 1.
        margin: How far its 90 % interval over tasks reaches to both sides; None for one task.
        steps: Mean decisions of an episode.
        tasks: Tasks played.
        episodes: Times that each was.
    """

    success: float
    margin: float | None
    steps: float | None
    tasks: int
    episodes: int


def evaluate(config: EvaluateConfig) -> Evaluation:
    """Play the episodes that `config` asks for.

    Raises:
        EvaluationError: The directory holds no run, or one of another version.
        PolicyError: The run has not saved that policy.
        WorldError: The environment cannot be made.
    """
    torch.set_num_threads(config.threads)
    saved = saved_config(config.run)
    if saved is None:
        raise EvaluationError(f"{config.run} holds no run: name a directory that training wrote")
    world = _part(WorldConfig, saved, "world")
    world = replace(
        world,
        held_out=world.held_out + config.arguments,
        horizon=config.horizon or world.horizon,
    )
    policy = load_policy(
        config.run / config.policy, _part(PolicyConfig, saved, "policy"), world.face.style
    )
    trees: list[Group] = []
    form = _part(PromptFormat, saved, "prompt")
    with closing(Collector.in_world(policy, world, world.make_held_out, form)) as collector:
        for first in range(0, config.tasks, TASKS_AT_ONCE):
            tasks = range(first, min(first + TASKS_AT_ONCE, config.tasks))
            trees += collector.collect(
                tasks, roots=config.episodes, seed=(config.seed, first // TASKS_AT_ONCE)
            )
    success = interval([tree.success_rate() for tree in trees])
    return Evaluation(
        success.mean, success.margin, episode_steps(trees), config.tasks, config.episodes
    )


def _part(kind: type[Part], saved: dict[str, Any], name: str) -> Part:
    """A part of a saved configuration, which has lists in place of tuples."""
    values = saved.get(name, {})
    try:
        return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})
    except TypeError as error:
        raise EvaluationError(
            f"the run's configuration of {name} is of another version of the learner ({error}): "
            "evaluate it with the version that its config.json names"
        ) from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate what the command line asks for, print it as JSON; gives the exit status."""
    try:
        found = evaluate(tyro.cli(EvaluateConfig, args=arguments, description=__doc__))
    except SandboxGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(asdict(found), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
