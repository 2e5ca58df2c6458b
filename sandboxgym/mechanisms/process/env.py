"""`process`: any single-threaded environment becomes forkable by forking its process."""

from __future__ import annotations

import copy
import sys
from typing import Any

import gymnasium as gym

from sandboxgym.core import wrappers
from sandboxgym.core.errors import (
    EnvironmentRaisedError,
    NotForkableError,
    NotResetError,
    ReproductionError,
    StateEncodingError,
)
from sandboxgym.core.rng import reseed_generator
from sandboxgym.core.snapshot import Fidelity
from sandboxgym.mechanisms.foreign import Factory, ForeignEnv
from sandboxgym.mechanisms.process.family import Family
from sandboxgym.mechanisms.process.handles import Process
from sandboxgym.mechanisms.process.making import maker_of
from sandboxgym.mechanisms.process.templates import Limits, Template
from sandboxgym.mechanisms.twins import changed_setting


class ProcessEnv(ForeignEnv):
    """Runs an environment in a process of its own, whose forks are its snapshots.

    A snapshot holds a template: a fork that waits. Restoring forks the template. Both copy memory
    only where it is written to. Templates end with the last snapshot that holds them; where there
    are too many the one that was not used for longest ends, and its snapshots restore by replay.

    `reset`, `step`, `render` and `close` go to the other process; attributes of the environment do
    not. Linux only.

    Args:
        env: The environment, with any wrappers. It shows what to build in the other process, and is
            closed once that has one.
        factory: Makes another such environment. None takes what Gymnasium or the classes recorded.
        timeout: Seconds that building and each call may take before the process is ended; None
            sets no limit.
        max_templates: How many templates there may be, those of forks included.
        max_memory: How many bytes of memory the templates may take together.
        family: The processes of an equal environment, to be shared with it; `spawn` does so.

    Raises:
        NotForkableError: This is not Linux.
        ReproductionError: The environment cannot be built in another process, or was changed after
            it was built.
        UncapturedStateError: As it is built, it holds something that a fork would not copy.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        factory: Factory | None = None,
        *,
        timeout: float | None = 300.0,
        max_templates: int = 64,
        max_memory: int = 4 * 2**30,
        family: Family | None = None,
    ) -> None:
        if sys.platform != "linux":
            raise NotForkableError(
                f"mechanism 'process' needs Linux, and this is {sys.platform}: use "
                "mechanism='replay'"
            )
        super().__init__(env, factory)
        self.action_space = copy.deepcopy(env.action_space)  # forks share `env`, not its generators
        self.observation_space = copy.deepcopy(env.observation_space)
        self.timeout = timeout
        self.limits = Limits(max_templates, max_memory)
        self._family = family
        self._process: Process | None = None
        if family is None:
            family = self._family_or_new()
            _check_unchanged(env, family, factory)
            self._process = family.fresh()
            env.close()

    @property
    def fidelity(self) -> Fidelity:
        """Memory of the process and its temporary files, by fork; elsewhere by replay."""
        files = self._family is not None and self._family.nursery.private_files
        return Fidelity(
            scope=frozenset({"memory", "filesystem"} if files else {"memory"}),
            mechanism="process",
            portable=self.recipe_replays,
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment inside; without a seed, with one from this one's generator."""
        gym.Env.reset(self, seed=seed)
        inner_seed = int(self.np_random.integers(2**31)) if seed is None else seed
        if self._process is None:
            self._process = self._family_or_new().fresh()
        obs, info = self._ask("reset", inner_seed, options)
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment inside."""
        obs, reward, terminated, truncated, info = self._ask("step", action)
        return obs, reward, bool(terminated), bool(truncated), info

    def hold(self) -> Template:
        """Fork the process; the fork waits until the last snapshot that holds it is gone."""
        family = self._family_or_new()
        try:
            return family.templates.keep(self._worker().fork())
        finally:
            self._drop_if_gone()

    def resume(self, held: Any) -> bool:
        """Fork a template; only when the fork has answered does it replace the present process."""
        process = held.thaw() if isinstance(held, Template) else None
        if process is None:
            return False
        if self._process is not None:
            self._process.dismiss()
        self._process = process
        self._seen = process.seen
        self._family_or_new().templates.used(held)
        return True

    def reseed(self, seed: int) -> None:
        """Reseed the generator of the environment inside."""
        reseed_generator(self, seed)
        self._ask("reseed", seed)

    def spawn(self) -> ProcessEnv:
        """Another environment of the same kind, bred from the same first instance."""
        twin = type(self)(
            self.env,
            self.factory,
            timeout=self.timeout,
            max_templates=self.limits.templates,
            max_memory=self.limits.memory,
            family=self._family_or_new(),
        )
        twin.recipe_replays = self.recipe_replays
        twin.choice = self.choice
        return twin

    def render(self) -> Any:
        """Render the environment inside."""
        return self._ask("render")

    def close(self) -> None:
        """Close the environment inside and end its process. Snapshots stay as they are."""
        process, self._process = self._process, None
        self._record = None
        self._family = None
        if process is None:
            return
        try:
            process.ask("close")
        finally:
            process.dismiss()

    def _ask(self, what: str, *args: Any) -> Any:
        """Have the process do something; where nobody knows how far it came, the episode ends."""
        process = self._worker()
        try:
            result = process.ask(what, *args)
        except (EnvironmentRaisedError, StateEncodingError):
            self._record = None
            raise
        finally:
            self._drop_if_gone()
        self._seen = process.seen
        return result

    def _worker(self) -> Process:
        if self._process is None:
            raise NotResetError(
                "the environment runs in no process (it was closed, or its process ended): reset "
                "or restore first"
            )
        return self._process

    def _drop_if_gone(self) -> None:
        if self._process is not None and self._process.gone:
            self._process = None
            self._record = None

    def _family_or_new(self) -> Family:
        if self._family is None or self._family.gone:
            family = Family(maker_of(self.env, self.factory), self.timeout, self.limits)
            _check_same_kind(self.env, family)
            self._family = family
        return self._family


def _check_same_kind(env: gym.Env[Any, Any], family: Family) -> None:
    names = [wrappers.name_of(env)]
    while isinstance(env, gym.Wrapper):
        env = env.env
        names.append(wrappers.name_of(env))
    if list(map(_short, names)) != list(map(_short, family.layers)):
        raise ReproductionError(
            f"the factory makes {' > '.join(family.layers)}, and the environment is "
            f"{' > '.join(names)}: let the factory make the same"
        )


def _check_unchanged(env: gym.Env[Any, Any], family: Family, factory: Factory | None) -> None:
    """Refuse an environment whose attributes were set: the one in the process would lack that."""
    changed = changed_setting(env, family.settings, factory)
    if changed is not None:
        raise ReproductionError(
            f"{env} was changed after it was built, and the one in another process would not be: "
            f"{changed}. Pass a factory that makes the same change"
        )


def _short(name: str) -> str:
    """A name without the function that a class was defined in: it is lost on the way there."""
    return f"{name.partition(':')[0]}:{name.rpartition('.')[2].rpartition(':')[2]}"
