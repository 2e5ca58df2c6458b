"""The record of the present episode, from which a snapshot takes its recipe, and who keeps it."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium as gym

from sandboxgym.core import rng
from sandboxgym.core.errors import (
    EpisodeEndedError,
    NotResetError,
    SandboxGymError,
    StateEncodingError,
)
from sandboxgym.core.snapshot import Recipe, Snapshot, Transition
from sandboxgym.core.tensors import plain

if TYPE_CHECKING:
    from sandboxgym.core.env import ForkableEnv

States: TypeAlias = list[dict[str, Any] | None]
Move: TypeAlias = tuple[int, int, dict[str, Any]]
BEFORE_RESET = -1


@dataclass(frozen=True, slots=True)
class Shown:
    """What a wrapper made of a transition of the base environment."""

    wrapper: weakref.ref[gym.Env[Any, Any]]
    inner: Transition
    outer: Transition | StateEncodingError


@dataclass(slots=True)
class Record:
    """What happened in the present episode: the recipe under construction and the last result.

    `replayed` has the state in which a replay of the recipe would leave each generator (those of
    `rng.states`). It is not the present one where something outside drew from a generator; None is
    for what nobody knows.
    """

    seed: int | None
    options: dict[str, Any] | None
    rng: dict[str, Any] | None
    last: Transition
    actions: list[Any] = field(default_factory=list)
    reseeds: tuple[tuple[int, int], ...] = ()
    moved: tuple[Move, ...] = ()
    parent: str | None = None
    replayed: list[dict[str, Any] | None] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)

    def show(self, wrapper: gym.Env[Any, Any], outer: Transition | StateEncodingError) -> None:
        """Remember what a wrapper returned; it holds until the base environment is called again."""
        others = [s for s in self.shown if s.inner is self.last and s.wrapper() is not wrapper]
        self.shown = [*others, Shown(weakref.ref(wrapper), self.last, outer)]

    def shown_by(self, wrapper: gym.Env[Any, Any]) -> Transition | None:
        """What a wrapper returned last, if that is remembered.

        Raises:
            StateEncodingError: It returned something that is not plain data.
        """
        for shown in self.shown:
            if shown.inner is self.last and shown.wrapper() is wrapper:
                if isinstance(shown.outer, StateEncodingError):
                    raise shown.outer
                return shown.outer
        return None

    def recipe(self, env: ForkableEnv[Any, Any]) -> Recipe:
        """The recipe up to now, which leaves the generator of `env` in its present state."""
        moved = self.moved
        now = rng.generator_state(env._np_random)
        if now is not None and not rng.same(now, self.replayed[0]):
            moved = (*moved, (len(self.actions), 0, now))
        actions = tuple(self.actions)
        return Recipe(self.seed, self.options, self.rng, actions, self.reseeds, moved)

    def drew(self, before: States, after: States, at: int) -> None:
        """Note which generators a call moved, and where they were if a replay would not know."""
        moved = []
        for index, (start, end) in enumerate(zip(before, after, strict=True)):
            if rng.same(start, end):
                continue
            if start is not None and not rng.same(start, self.replayed[index]):
                moved.append((at, index, start))
            self.replayed[index] = end
        if moved:
            self.moved = (*self.moved, *moved)

    @classmethod
    def of(cls, snapshot: Snapshot, env: ForkableEnv[Any, Any]) -> Record:
        """The record that `env`, restored from `snapshot`, continues."""
        recipe = snapshot.recipe
        return cls(
            seed=recipe.seed,
            options=recipe.options,
            rng=recipe.rng,
            last=snapshot.inner,
            actions=list(recipe.actions),
            reseeds=recipe.reseeds,
            moved=recipe.moved,
            parent=snapshot.digest,
            replayed=[snapshot.rng["np_random"], *(None for _ in rng.states(env)[1:])],
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
        kept = plain(options, "options")
        # An unseeded reset continues the generator, so the recipe has to start from its state.
        if seed is None:
            self.np_random  # noqa: B018 - makes the generator where there is none yet
        states = rng.states(self)
        before = states[0]
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
        record = Record(None if seed is None else int(seed), kept, start, last)
        now = rng.states(self)
        record.replayed = [now[0], *(None for _ in now[1:])]
        record.drew([now[0], *states[1:]], now, BEFORE_RESET)
        self._record = record
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
        kept = plain(action, "action")
        before = rng.states(self)
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
        record.drew(before, rng.states(self), len(record.actions))
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
