"""`native`: an environment is captured and set through its own state API.

`NativeEnv` takes the place of the base environment, below all wrappers, so that each wrapper keeps
its place and its rule. To whatever lies above it looks like the environment inside.
"""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Any

from sandboxgym.core import wrappers
from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.plain import owned
from sandboxgym.core.snapshot import Fidelity
from sandboxgym.core.version import __version__
from sandboxgym.mechanisms.state_api import StateApi, api_for, register_native
from sandboxgym.mechanisms.twins import AnyEnv, Factory, arguments_of, build_twin

__all__ = ["NativeEnv", "StateApi", "api_for", "register_native"]

_OWN = frozenset({"env", "api", "factory", "spec", "metrics", "_constructor"})


def _of_the_inside(name: str) -> Any:
    """A property that stands for an attribute of the environment inside."""

    def read(self: NativeEnv) -> Any:
        return getattr(self.env, name)

    def write(self: NativeEnv, value: Any) -> None:
        setattr(self.env, name, value)

    return property(read, write)


class NativeEnv(ForkableEnv[Any, Any]):
    """Puts a base environment under the contract, by its state API.

    Attributes that this class does not have are those of the environment inside, to read and to
    write; so are its generator and its spaces. What it returns is copied: some environments hand
    out the very array that holds their state.

    Args:
        env: The base environment. It is owned by this one, and closed with it.
        api: Captures and sets its state.
        factory: Makes another such environment, under any wrappers, for `fork`. None takes what
            Gymnasium or the class recorded.
    """

    _versions: dict[str, str] | None = None

    # What `gymnasium.Env` gives to every environment, and what must not be there twice.
    _np_random = _of_the_inside("_np_random")
    _np_random_seed = _of_the_inside("_np_random_seed")
    action_space = _of_the_inside("action_space")
    observation_space = _of_the_inside("observation_space")
    metadata = _of_the_inside("metadata")
    render_mode = _of_the_inside("render_mode")

    def __init__(self, env: AnyEnv, api: StateApi, factory: Factory | None = None) -> None:
        self.env = env
        self.api = api
        self.factory = factory
        self.spec = env.spec
        api.attach(env)

    def __getattr__(self, name: str) -> Any:
        """Attributes of the environment inside."""
        if name in _OWN or name.startswith("__"):  # not set yet, or not for us
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.env, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set our own attributes here, and all others on the environment inside."""
        if name in _OWN or hasattr(type(self), name):
            object.__setattr__(self, name, value)
        else:
            setattr(self.env, name, value)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment inside."""
        if seed is None and self.api.draws_seeds:
            seed = int(self.np_random.integers(2**31))
        obs, info = self.env.reset(seed=seed, options=options)
        return owned(obs, "observation"), owned(info, "info")

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment inside."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        return (
            owned(obs, "observation"),
            owned(reward, "reward"),
            bool(terminated),
            bool(truncated),
            owned(info, "info"),
        )

    def get_state(self) -> Any:
        """What the state API captures."""
        return self.api.get(self.env)

    def set_state(self, state: Any) -> None:
        """Let the state API set a state."""
        self.api.set(self.env, state)

    def reseed(self, seed: int) -> None:
        """Start new randomness as the state API does it."""
        self.api.reseed(self.env, seed)

    def spawn(self) -> NativeEnv:
        """Another base environment of the same kind, under the same kind of state API."""
        base = build_twin(self.env, self.factory).unwrapped
        twin = type(self)(base, type(self.api)(), self.factory)
        twin.choice = self.choice
        return twin

    @property
    def fidelity(self) -> Fidelity:
        """What the state API says of itself."""
        return self.api.fidelity

    def spec_kwargs(self) -> dict[str, Any]:
        """The class and the arguments of the environment inside."""
        return {
            "environment": wrappers.name_of(self.env),
            "kwargs": arguments_of(self.env, self.factory),
        }

    @property
    def sandbox_versions(self) -> dict[str, str]:
        """Versions of this package, of the environment's, of its state API and what that names."""
        if self._versions is None:
            package = type(self.env).__module__.partition(".")[0]
            api = type(self.api)
            self._versions = {
                "sandboxgym": __version__,
                package: str(getattr(sys.modules.get(package), "__version__", "unknown")),
                f"{api.__qualname__} state": str(api.state_version),
                **{name: importlib.metadata.version(name) for name in api.packages},
            }
        return self._versions

    def render(self) -> Any:
        """Render the environment inside."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment inside."""
        self.env.close()
