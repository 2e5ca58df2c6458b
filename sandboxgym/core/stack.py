"""`Stack`: an environment taken apart into its wrappers and the environment below them."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from sandboxgym.core import describe, wrappers
from sandboxgym.core.digest import first_difference
from sandboxgym.core.errors import (
    NotForkableError,
    ReproductionError,
    SnapshotVersionError,
    SpecMismatchError,
    WrapperMismatchError,
)
from sandboxgym.core.snapshot import Snapshot, Transition, WrapperState
from sandboxgym.core.tensors import raised

if TYPE_CHECKING:
    from sandboxgym.core.env import ForkableEnv

AnyEnv = gym.Env[Any, Any]


@dataclass(frozen=True)
class Stack:
    """An environment taken apart: its wrappers, outermost first, and the base environment."""

    layers: list[wrappers.AnyWrapper]
    base: ForkableEnv[Any, Any]

    @classmethod
    def of(cls, env: AnyEnv) -> Stack:
        """Walk the stack of `env`, which is from now on known to reach out to `env`.

        Raises:
            NotForkableError: The innermost environment is no `ForkableEnv`.
            WrapperMismatchError: `env` is below the outermost wrapper that is known.
        """
        layers: list[wrappers.AnyWrapper] = []
        while isinstance(env, gym.Wrapper):
            layers.append(env)
            env = env.env
        if not hasattr(env, "_record"):
            raise NotForkableError(
                f"{type(env).__name__} is not a ForkableEnv: wrap the environment with "
                "sandboxgym.forkable(env), or derive it from sandboxgym.ForkableEnv"
            )
        base: ForkableEnv[Any, Any] = env  # type: ignore[assignment]  # it has a record
        known = base._outermost() if base._outermost is not None else None
        if known is not None and not any(known is layer for layer in layers):
            raise WrapperMismatchError(
                f"{type(base).__name__} is wrapped, and capturing or restoring it alone would "
                f"leave the wrappers' counters behind: use the outermost wrapper, {known}"
            )
        if layers:
            base._outermost = weakref.ref(layers[0])
        return cls(layers, base)

    @property
    def recomputable(self) -> bool:
        """Whether what the stack returned last follows at any time from its states."""
        return all(wrappers.is_recomputable(layer) for layer in self.layers)

    def check_accepts(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot of another environment, stack or version."""
        if not isinstance(snapshot, Snapshot):
            raise TypeError(
                f"restore takes a Snapshot, not {type(snapshot).__name__}: read a file with "
                "Snapshot.load, bytes with Snapshot.from_bytes"
            )
        spec = self.base.sandbox_spec
        if snapshot.spec is not spec:
            if spec.id != snapshot.spec.id:
                raise SpecMismatchError(
                    f"the snapshot is of {snapshot.spec.id}, this environment is {spec.id}"
                )
            difference = first_difference(spec.kwargs, snapshot.spec.kwargs)
            if difference is not None:
                raise SpecMismatchError(
                    f"the snapshot is of a {spec.id} with other arguments: {difference.path} is "
                    f"{difference.right} there and {difference.left} here"
                )
        names = [wrappers.name_of(layer) for layer in self.layers]
        if names != [saved.name for saved in snapshot.wrappers]:
            raise WrapperMismatchError(
                f"the snapshot was taken through {_text([w.name for w in snapshot.wrappers])}"
                f", this environment is under {_text(names)}: restore through the same stack "
                "(not through env.unwrapped, which would leave the wrappers' counters behind)"
            )
        for layer, saved in zip(self.layers, snapshot.wrappers, strict=True):
            _check_arguments(layer, saved)
        versions = self.base.sandbox_versions
        if snapshot.state is not None and versions != snapshot.versions:
            raise SnapshotVersionError(
                f"the state was captured with {snapshot.versions}, this environment has "
                f"{versions}: restore snapshot.drop_state() to replay its recipe here, verified "
                "by its digest"
            )

    def last(self) -> Transition:
        """The last transition as it is seen outside all wrappers.

        Raises:
            UncapturedStateError: A wrapper has not kept what that would take.
            StateEncodingError: It is not plain data.
        """
        record = self.base._record
        assert record is not None
        last, alive = record.last, _alive(record.last)
        for layer in reversed(self.layers):
            shown = record.shown_by(layer)
            if shown is not None:
                last, alive = shown, _alive(shown)
                continue
            viewed = wrappers.view(layer, alive)
            if viewed is not alive:
                if not record.actions:  # a reset has no reward that a wrapper could change
                    viewed = replace(viewed, reward=alive.reward)
                last = alive = viewed
        owned = last is record.last or any(last is shown.outer for shown in record.shown)
        return last if owned else last.copy()

    def capture(self) -> tuple[WrapperState, ...]:
        """The state of each wrapper, outermost first."""
        record = self.base._record
        assert record is not None
        outermost = self.layers[:1]
        inner = [wrappers.capture(layer, record.shown_by(layer)) for layer in self.layers[1:]]
        return (*[wrappers.capture(layer) for layer in outermost], *inner)

    def apply(self, snapshot: Snapshot, *, rewind_statistics: bool) -> None:
        """Put the state of each wrapper back, and remember what the wrappers returned then."""
        record = self.base._record
        assert record is not None
        for layer, saved in zip(self.layers, snapshot.wrappers, strict=True):
            wrappers.apply(layer, saved, rewind_statistics=rewind_statistics)
            if saved.shown is not None:
                record.show(layer, saved.shown)
        if not self.recomputable:
            record.show(self.layers[0], snapshot.last)

    def reproduce(self) -> Any:
        """A second, not reset instance of the whole stack."""
        for layer in self.layers:
            if not isinstance(layer, gym.utils.RecordConstructorArgs):
                raise ReproductionError(
                    f"{type(layer).__name__} does not record how it was constructed: derive it "
                    "from gymnasium.utils.RecordConstructorArgs, or build the second environment "
                    "yourself and sandboxgym.restore the snapshot into it"
                )
        env: AnyEnv = self.base.spawn()
        try:
            for layer in reversed(self.layers):
                env = _rebuilt(layer, env)
        except BaseException:
            env.close()
            raise
        return env


def _rebuilt(layer: wrappers.AnyWrapper, env: AnyEnv) -> AnyEnv:
    try:
        return type(layer)(env, **wrappers.constructed_with(layer))
    except TypeError as error:
        raise ReproductionError(
            f"{type(layer).__name__} cannot be built again from the arguments that it recorded "
            f"({error}): build the second environment yourself and sandboxgym.restore the "
            "snapshot into it"
        ) from error


def _check_arguments(layer: wrappers.AnyWrapper, saved: WrapperState) -> None:
    name = type(layer).__name__
    difference = first_difference(wrappers.kwargs_of(layer), saved.kwargs)
    if difference is not None:
        raise WrapperMismatchError(
            f"{name} has other arguments than in the snapshot: {difference.path} is "
            f"{difference.right} there and {difference.left} here"
        )
    argument = describe.differing_function(wrappers.functions_of(layer), saved.functions)
    if argument is not None:
        raise WrapperMismatchError(
            f"{name} has another function as {argument!r} than in the snapshot: they have the same "
            "name, but their code, or the data that they close over, is not the same"
        )


def _alive(last: Transition) -> Transition:
    """A transition as the wrappers saw it, with arrays of the frameworks that they were of."""
    obs, reward, info = raised(last.obs), raised(last.reward), raised(last.info)
    if obs is last.obs and reward is last.reward and info is last.info:
        return last
    return replace(last, obs=obs, reward=reward, info=info)


def _text(names: list[str]) -> str:
    return " > ".join(name.rpartition(":")[2] for name in names) or "no wrapper"
