"""The worlds of the learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandboxgym_learners import demo
from sandboxgym_learners.jobs import Setting


@dataclass(frozen=True)
class Unseen:
    """Tasks that nothing was trained on, to play with what was learned.

    Attributes:
        name: For the table.
        arguments: Of the environment.
        tasks: How many there are.
        horizon: Steps after which an episode is cut off.
        real: Whether they need ALFWorld's own data.
    """

    name: str
    arguments: tuple[str, ...]
    tasks: int
    horizon: int
    real: bool = False


VALID_SEEN = Unseen(
    "valid_seen", ("source=real", "split=valid_seen", "task_types=null"), 140, 50, real=True
)
"""All of ALFWorld's own games of that split, of all types of tasks."""


@dataclass(frozen=True)
class World:
    """What is trained on.

    Attributes:
        describes: In words, for the table.
        settings: Options of the training.
        compute: Budget of each run, in units of one environment step.
        rates: Learning rates that methods are tuned over.
        unseen: What else is played in the end.
    """

    describes: str
    settings: Mapping[str, Setting]
    compute: float
    rates: Sequence[float] = (2.5e-4, 5e-4, 1e-3)
    unseen: Unseen = VALID_SEEN


_SMALL: dict[str, Setting] = {
    "world.eval-episodes": 8,
    "eval-every": 12,
    "policy.width": 32,
    "prompt.actions": 4,
    "tree.per-update": 2,
    "learning.warmup": 5,
}
"""A model and prompts small enough for hundreds of updates in minutes."""

_FEW_HOUSES: dict[str, Setting] = {**demo.SETTINGS, **_SMALL}

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
    "shop": World(
        "WebShop, eight goals among 100 generated products, 12 steps, evaluated on the goals "
        "trained on",
        {
            **_SMALL,
            "world.env": "sandboxgym/WebShop-v0",
            "world.arguments": ("num_products=100",),
            "world.horizon": 12,
            "world.train": ("split=train",),
            "world.held-out": ("split=train",),
            "world.train-tasks": 8,
            "world.eval-tasks": 8,
            "cloning.steps": 30,
            "cloning.tasks": 8,
            "cloning.detour": 2,
        },
        compute=150_000.0,
        unseen=Unseen("test split", ("split=test",), 80, 12),
    ),
}
