"""The worlds of the learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandboxgym_learners import demo
from sandboxgym_learners.jobs import Setting


@dataclass(frozen=True)
class World:
    """What is trained on.

    Attributes:
        describes: In words, for the table.
        settings: Options of the training.
        compute: Budget of each run, in units of one environment step.
        rates: Learning rates that methods are tuned over.
    """

    describes: str
    settings: Mapping[str, Setting]
    compute: float
    rates: Sequence[float] = (2.5e-4, 5e-4, 1e-3)


_FEW_HOUSES: dict[str, Setting] = {
    **demo.SETTINGS,
    "world.eval-episodes": 8,
    "eval-every": 12,
    "policy.width": 32,
    "prompt.actions": 4,
    "tree.per-update": 2,
    "learning.warmup": 5,
}
"""A model and prompts small enough for hundreds of updates in minutes."""

WORLDS = {
    "short": World(
        "ALFWorld, eight generated easy houses, 20 steps, evaluated on the houses trained on",
        _FEW_HOUSES,
        compute=150_000.0,
        rates=(5e-4, 1e-3, 2e-3),
    ),
    "long": World(
        "ALFWorld, four generated houses with a long routine first, 34 steps, evaluated on the "
        "houses trained on",
        {
            **_FEW_HOUSES,
            "world.arguments": (
                "source=synthetic",
                "difficulty=long",
                'task_types=["pick_and_place_simple"]',
            ),
            "world.horizon": 34,
            "world.train-tasks": 4,
            "world.eval-tasks": 4,
            "world.eval-episodes": 16,
            "cloning.steps": 100,
            "cloning.tasks": 4,
            "cloning.detour": 0,
        },
        compute=500_000.0,
        rates=(1.25e-4, 2.5e-4, 5e-4),
    ),
}
