"""Crafter (`crafter` 1.8) as a Gymnasium environment, and deterministic.

Crafter speaks the interface of the old `gym`. And the same seed does not give the same episode, not
even in one process: the creatures of a part of the world are kept in a `set`, which is walked
through in the order of their addresses in memory, and a random number picks one of them. Here they
are kept in the order in which they came.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from sandboxgym.core.errors import MissingDependencyError

try:
    import crafter
    from crafter import constants, engine
except ImportError as error:
    raise MissingDependencyError(
        'Crafter is not installed: pip install "sandboxgym[crafter]"'
    ) from error

Image = np.ndarray[Any, np.dtype[np.uint8]]


class CrafterEnv(gym.Env[Image, Any]):
    """Crafter with Gymnasium's interface; the picture is the observation.

    An episode ends when the player dies, and is truncated after `length` steps.

    Args:
        area: Width and height of the world.
        view: How many fields the picture shows.
        size: Width and height of the picture in pixels.
        length: Steps of an episode.
        in_order: Keep creatures in order. False leaves them as Crafter has them: episodes cannot
            be repeated, and of a thousand forks of its process one went another way. For tests.
        render_mode: "rgb_array", or None.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(
        self,
        area: tuple[int, int] = (64, 64),
        view: tuple[int, int] = (9, 9),
        size: tuple[int, int] = (64, 64),
        length: int = 10000,
        in_order: bool = True,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = render_mode
        self.action_space = gym.spaces.Discrete(len(constants.actions))
        self.observation_space = gym.spaces.Box(0, 255, (size[1], size[0], 3), np.uint8)
        self._game = crafter.Env(area=area, view=view, size=size, length=length, seed=0)
        if in_order:
            world = OrderedWorld(area, constants.materials, (12, 12))
            for holder in (self._game, self._game._local_view, self._game._sem_view):
                holder._world = world

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Image, dict[str, Any]]:
        """Make a new world; without a seed, from one that is drawn from `np_random`."""
        super().reset(seed=seed)
        self._game._seed = int(self.np_random.integers(2**31))
        self._game._episode = 0
        return self._game.reset(), {}

    def step(self, action: Any) -> tuple[Image, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        obs, reward, over, info = self._game.step(action)
        info["player_pos"] = info["player_pos"].copy()  # Crafter hands out the player's own
        dead = info["discount"] == 0
        return obs, float(reward), dead, over and not dead, info

    def render(self) -> Image | None:
        """The picture, larger than it is observed."""
        return None if self.render_mode is None else self._game.render((512, 512))


class OrderedWorld(engine.World):  # type: ignore[misc]  # Crafter has no types
    """A world that keeps the creatures of each of its parts in the order in which they came."""

    def reset(self, seed: int | None = None) -> None:
        """Empty the world."""
        super().reset(seed)
        self._chunks: dict[Any, OrderedSet] = collections.defaultdict(OrderedSet)


class OrderedSet:
    """A set, as far as Crafter uses one, that is walked through in the order of adding."""

    def __init__(self) -> None:
        self._items: dict[Any, None] = {}

    def add(self, item: Any) -> None:
        """Put an item at the end."""
        self._items[item] = None

    def remove(self, item: Any) -> None:
        """Take an item out."""
        del self._items[item]

    def __iter__(self) -> Iterator[Any]:
        """The items, as they came."""
        return iter(self._items)
