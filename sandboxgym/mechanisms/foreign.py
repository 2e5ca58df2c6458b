"""What all mechanisms share that treat an environment, its wrappers included, as a black box."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import gymnasium as gym

from sandboxgym.core import wrappers
from sandboxgym.core.digest import digest
from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import StateEncodingError
from sandboxgym.core.rng import reseed_generator
from sandboxgym.core.version import __version__
from sandboxgym.mechanisms.twins import Factory, arguments_of, build_twin

__all__ = ["Factory", "ForeignEnv"]


class ForeignEnv(ForkableEnv[Any, Any]):
    """Wraps a Gymnasium environment that knows nothing of snapshots.

    What is known of its state is a hash that chains every observation, reward, flag and info since
    the reset: a witness, by which a restored state that differs anywhere on its way is refused.

    Wrappers inside have to be deterministic too: put `RecordEpisodeStatistics`, which adds the time
    of an episode to its info, around the result instead.

    Attributes:
        recipe_replays: Whether a replay of its recipe is known, or has yet to turn out, to give the
            same episode. Without that, a snapshot is worth nothing in another process.

    Args:
        env: The environment, with any wrappers. It is owned by this one, and closed with it.
        factory: Makes another such environment, for `fork`. None builds it from `env.spec`.
    """

    state_is_witness: ClassVar[bool] = True
    recipe_replays: bool = True

    def __init__(self, env: gym.Env[Any, Any], factory: Factory | None = None) -> None:
        self.env = env
        self.factory = factory
        self.spec = env.spec
        self.metadata = env.metadata
        self.render_mode = env.render_mode
        self.action_space = env.action_space
        self.observation_space = env.observation_space
        self._seen = ""

    def spec_kwargs(self) -> dict[str, Any]:
        """The class, arguments and wrappers of the environment inside."""
        env, layers = self.env, []
        while isinstance(env, gym.Wrapper):
            layers.append([wrappers.name_of(env), wrappers.kwargs_of(env)])
            env = env.env
        return {
            "environment": wrappers.name_of(env),
            "kwargs": arguments_of(env, self.factory),
            "wrappers": layers,
        }

    @property
    def sandbox_versions(self) -> dict[str, str]:
        """Versions of this package, of Gymnasium and of the environment inside.

        The same for every mechanism, so that one takes the snapshots of another, by their recipe.
        """
        package = type(self.env.unwrapped).__module__.partition(".")[0]
        version = getattr(sys.modules.get(package), "__version__", "unknown")
        return {
            "sandboxgym": __version__,
            "gymnasium": gym.__version__,
            package: str(version),
            "witness": str(self.state_version),
        }

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment inside; without a seed, with one drawn from this one's generator.

        An environment inside that was never seeded would draw from the operating system, which no
        replay could repeat.
        """
        super().reset(seed=seed)
        inner_seed = int(self.np_random.integers(2**31)) if seed is None else seed
        obs, info = self.env.reset(seed=inner_seed, options=options)
        self._saw(obs, info)
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment inside."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._saw(self._seen, action, obs, reward, terminated, truncated, info)
        return obs, reward, bool(terminated), bool(truncated), info

    def get_state(self) -> dict[str, Any]:
        """The hash of everything seen: a witness, not a state to be set."""
        return {"seen": self._seen}

    def reseed(self, seed: int) -> None:
        """Reseed the generator of the environment inside."""
        super().reseed(seed)
        reseed_generator(self.env.unwrapped, seed)
        self._saw(self._seen, "reseed", seed)

    def spawn(self) -> ForeignEnv:
        """Another environment of the same kind, from the factory or from Gymnasium's record."""
        twin = type(self)(build_twin(self.env, self.factory), self.factory)
        twin.recipe_replays = self.recipe_replays
        twin.choice = self.choice
        return twin

    def _saw(self, *what: Any) -> None:
        """Chain what happened to the hash; what cannot be hashed leaves no record to replay."""
        try:
            self._seen = digest(list(what))
        except StateEncodingError:
            self._record = None
            raise

    def render(self) -> Any:
        """Render the environment inside."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment inside."""
        self.env.close()
