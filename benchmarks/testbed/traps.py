"""Ways to fork real environments that look right and are not. The conformance suite finds each.

Run from the root of the repository, for instance:

    sandboxgym check benchmarks.testbed.traps:ale_by_deepcopy
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from sandboxgym import ForkableEnv
from sandboxgym.mechanisms import ReplayEnv
from sandboxgym.mechanisms.copying import CopyEnv


def ale_by_deepcopy() -> CopyEnv:
    """`copy.deepcopy` of an ALE environment returns without an error: a new environment."""
    import ale_py

    gym.register_envs(ale_py)
    return CopyEnv(gym.make("ALE/Breakout-v5"))


def crafter_as_published() -> ReplayEnv:
    """Crafter walks through sets of objects, in the order of their addresses in memory."""
    from sandboxgym.sandboxes.classic.crafter import CrafterEnv

    def make() -> gym.Env[Any, Any]:
        return CrafterEnv(area=(32, 32), in_order=False)

    return ReplayEnv(make(), make)


class TimeLimitLeftBehind(ForkableEnv[Any, Any]):
    """CartPole under a time limit, restored through `env.unwrapped`, as one finds it in the wild.

    The counter of the time limit stays where it was, and so does what the environment counts.
    """

    def __init__(self, limit: int = 10) -> None:
        self.env = gym.make("CartPole-v1", max_episode_steps=limit)
        self.action_space = self.env.action_space
        self.observation_space = self.env.observation_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment inside."""
        super().reset(seed=seed)
        inner = int(self.np_random.integers(2**31)) if seed is None else seed
        return self.env.reset(seed=inner, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment inside."""
        return self.env.step(action)

    def get_state(self) -> Any:
        """Position and velocity of cart and pole: nothing else seems to matter."""
        return self.env.unwrapped.state  # type: ignore[attr-defined]  # of CartPole

    def set_state(self, state: Any) -> None:
        """Put them back."""
        if self.env.unwrapped.state is None:  # type: ignore[attr-defined]
            self.env.reset()
        self.env.unwrapped.state = state  # type: ignore[attr-defined]
