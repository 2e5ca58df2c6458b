"""Which environments are in the test bed, and how each is made."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym


@dataclass(frozen=True)
class Entry:
    """One environment of the test bed.

    Attributes:
        id: Its name here; its Gymnasium id where `make` is None.
        family: Under which heading it stands.
        kwargs: Arguments for `gymnasium.make`, or for `make`.
        make: "module:function" that makes it, where `gymnasium.make` alone does not.
        needs: The module whose absence means that it is not installed.
        depth: Forks are taken within so many steps of a reset.
        conformance_depth: Length of the episodes that the conformance suite plays.
    """

    id: str
    family: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    make: str | None = None
    needs: str = "gymnasium"
    depth: int = 200
    conformance_depth: int = 12


def _classic() -> list[Entry]:
    names = ("CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1")
    return [Entry(name, "Classic control") for name in (*names, "Acrobot-v1")]


def _toy_text() -> list[Entry]:
    taxi = "Taxi-v4" if "Taxi-v4" in gym.registry else "Taxi-v3"
    names = ("Blackjack-v1", "CliffWalking-v1", "FrozenLake-v1", taxi)
    return [Entry(name, "Toy text") for name in names]


def _box2d() -> list[Entry]:
    names = ("LunarLander-v3", "LunarLanderContinuous-v3", "BipedalWalker-v3")
    race = Entry("CarRacing-v3", "Box2D", needs="Box2D", depth=12, conformance_depth=6)
    return [*(Entry(name, "Box2D", needs="Box2D") for name in names), race]


def _mujoco() -> list[Entry]:
    names = (
        "Ant HalfCheetah Hopper Humanoid HumanoidStandup InvertedDoublePendulum InvertedPendulum "
        "Pusher Reacher Swimmer Walker2d"
    )
    return [Entry(f"{name}-v5", "MuJoCo", needs="mujoco") for name in names.split()]


def _atari() -> list[Entry]:
    def entry(name: str, game: str, **kwargs: Any) -> Entry:
        return Entry(name, "ALE", {"game": game, **kwargs}, f"{__name__}:atari", "ale_py")

    return [
        entry("ALE/Breakout-v5", "ALE/Breakout-v5"),
        entry("ALE/Pong-v5", "ALE/Pong-v5"),
        entry("ALE/Qbert-v5", "ALE/Qbert-v5"),
        entry(
            "ALE/Breakout-v5, no sticky actions",
            "ALE/Breakout-v5",
            repeat_action_probability=0.0,
        ),
        entry("ALE/SpaceInvaders-v5, frameskip 2 to 4", "ALE/SpaceInvaders-v5", frameskip=(2, 5)),
        entry("ALE/Pong-v5, continuous", "ALE/Pong-v5", continuous=True),
        entry("ALE/Breakout-v5, AtariPreprocessing", "ALE/Breakout-v5", preprocessed=True),
    ]


def _minigrid() -> list[Entry]:
    names = (
        "MiniGrid-DoorKey-8x8-v0",
        "MiniGrid-Dynamic-Obstacles-8x8-v0",
        "BabyAI-BossLevel-v0",
    )
    return [
        Entry(name, "MiniGrid", {"name": name}, f"{__name__}:minigrid", "minigrid")
        for name in names
    ]


def _games() -> list[Entry]:
    stock = f"{__name__}:stock_nethack"
    return [
        Entry("sandboxgym/Crafter-v0", "Crafter", {"area": (32, 32)}, needs="crafter"),
        Entry("sandboxgym/NetHack-v0", "NetHack", needs="nle"),
        Entry("NetHackScore-v0", "NetHack", {"name": "NetHackScore-v0"}, stock, "nle"),
    ]


def _text() -> list[Entry]:
    games = "sandboxgym.sandboxes.text.testbed_games"
    return [
        Entry("sandboxgym/ALFWorld-v0", "Text", {"source": "synthetic"}, depth=45),
        Entry("TextWorld", "Text", {}, f"{games}:textworld_env", "textworld", depth=50),
        Entry("Jericho", "Text", {}, f"{games}:jericho_env", "jericho", depth=50),
        Entry(
            "ScienceWorld",
            "Text",
            {},
            f"{games}:scienceworld_env",
            "scienceworld",
            depth=24,
            conformance_depth=4,
        ),
        Entry(
            "TextWorld-Express",
            "Text",
            {},
            f"{games}:textworld_express_env",
            "textworld_express",
            depth=8,
            conformance_depth=6,
        ),
    ]


ENTRIES: dict[str, Entry] = {
    entry.id: entry
    for family in (_classic, _toy_text, _box2d, _mujoco, _atari, _minigrid, _games, _text)
    for entry in family()
}


def make(id: str) -> gym.Env[Any, Any]:  # noqa: A002 - as Gymnasium calls it
    """An environment of the test bed as others publish it, before `forkable`."""
    entry = ENTRIES[id]
    if entry.make is None:
        return gym.make(entry.id, **entry.kwargs)
    module, _, name = entry.make.partition(":")
    made: gym.Env[Any, Any] = getattr(importlib.import_module(module), name)(**entry.kwargs)
    return made


def make_forkable(id: str) -> gym.Env[Any, Any]:  # noqa: A002
    """The same, forkable."""
    import sandboxgym

    return sandboxgym.forkable(make(id), factory=lambda: make(id))


def installed(entry: Entry) -> bool:
    """Whether the package that an environment needs is there."""
    return importlib.util.find_spec(entry.needs) is not None


def atari(game: str, preprocessed: bool = False, **kwargs: Any) -> gym.Env[Any, Any]:
    """An environment of ALE, whose ids are there only when `ale_py` registered them."""
    import ale_py

    gym.register_envs(ale_py)
    if not preprocessed:
        return gym.make(game, **kwargs)
    env = gym.make(game, frameskip=1, **kwargs)
    return gym.wrappers.AtariPreprocessing(env, noop_max=30, terminal_on_life_loss=True)


def minigrid(name: str) -> gym.Env[Any, Any]:
    """An environment of MiniGrid or BabyAI; `minigrid` registers the ids."""
    import minigrid as package

    gym.register_envs(package)
    return gym.make(name)


def stock_nethack(name: str) -> gym.Env[Any, Any]:
    """An environment of NLE as it is published, which takes no seed."""
    import nle

    gym.register_envs(nle)
    return gym.make(name)
