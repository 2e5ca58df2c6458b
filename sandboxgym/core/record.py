"""The record of the present episode, from which a snapshot takes its recipe, and who keeps it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sandboxgym.core import rng
from sandboxgym.core.errors import EpisodeEndedError, NotResetError, SandboxGymError
from sandboxgym.core.plain import owned
from sandboxgym.core.snapshot import Recipe, Snapshot, Transition

if TYPE_CHECKING:
    from sandboxgym.core.env import ForkableEnv


@dataclass(slots=True)
class Record:
    """What happened in the present episode: the recipe under construction and the last result."""

    seed: int | None
    options: dict[str, Any] | None
    rng: dict[str, Any] | None
    last: Transition
    actions: list[Any] = field(default_factory=list)
    reseeds: tuple[tuple[int, int], ...] = ()
    parent: str | None = None

    def recipe(self) -> Recipe:
        """The recipe up to now."""
        return Recipe(self.seed, self.options, self.rng, tuple(self.actions), self.reseeds)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Record:
        """The record that an environment restored from `snapshot` continues."""
        recipe = snapshot.recipe
        return cls(
            seed=recipe.seed,
            options=recipe.options,
            rng=recipe.rng,
            last=snapshot.inner,
            actions=list(recipe.actions),
            reseeds=recipe.reseeds,
            parent=snapshot.digest,
        )


def recorded_reset(reset: Callable[..., Any]) -> Callable[..., Any]:
    """Make a `reset` start a new record.

    Where it refuses (a `SandboxGymError`), the episode goes on; after any other exception nobody
    knows what state the environment is in, and it has to be reset or restored.
    """

    @functools.wraps(reset)
    def recorded(
        self: ForkableEnv[Any, Any],
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> Any:
        if self._inside_call:
            return reset(self, seed=seed, options=options)
        kept = owned(options, "options")
        # An unseeded reset continues the generator, so the recipe has to start from its state.
        before = rng.generator_state(self.np_random if seed is None else self._np_random)
        seed_before = self._np_random_seed
        self._inside_call = True
        try:
            obs, info = reset(self, seed=seed, options=options)
        except BaseException as error:
            self._np_random = rng.generator_from(before, self._np_random)
            self._np_random_seed = seed_before
            if not isinstance(error, SandboxGymError):
                self._record = None
            raise
        finally:
            self._inside_call = False
        self._record = None  # the reset happened; a result that is not plain leaves no record
        last = Transition(obs, 0.0, False, False, info).copy()
        start = before if seed is None else None
        self._record = Record(None if seed is None else int(seed), kept, start, last)
        return obs, info

    return _marked(recorded)


def recorded_step(step: Callable[..., Any]) -> Callable[..., Any]:
    """Make a `step` add to the record, and refuse before a reset and after the end.

    Exceptions are treated as those of a reset.
    """

    @functools.wraps(step)
    def recorded(self: ForkableEnv[Any, Any], action: Any) -> Any:
        if self._inside_call:
            return step(self, action)
        record = self._record
        if record is None:
            raise NotResetError(
                f"{type(self).__name__}: call reset() before step() (it was never reset, or its "
                "last call failed half-way)"
            )
        if record.last.ended:
            raise EpisodeEndedError(
                f"{type(self).__name__}: the episode has ended; call reset(), or restore a snapshot"
            )
        kept = owned(action, "action")
        self._inside_call = True
        try:
            obs, reward, terminated, truncated, info = step(self, action)
        except BaseException as error:
            if not isinstance(error, SandboxGymError):
                self._record = None
            raise
        finally:
            self._inside_call = False
        self._record = None  # the step happened; a result that is not plain leaves no record
        record.last = Transition(obs, reward, terminated, truncated, info).copy()
        record.actions.append(kept)
        self._record = record
        return obs, reward, terminated, truncated, info

    return _marked(recorded)


def is_recorded(method: Callable[..., Any]) -> bool:
    """Whether a `reset` or `step` keeps the record already."""
    return getattr(method, "_keeps_record", False)


def _marked(method: Callable[..., Any]) -> Callable[..., Any]:
    method._keeps_record = True  # type: ignore[attr-defined]  # functions take attributes
    return method
