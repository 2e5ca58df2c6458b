"""`ForkableEnv`: a Gymnasium environment that can be captured, put back and forked exactly."""

from __future__ import annotations

import copy
import inspect
import sys
import weakref
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import gymnasium as gym

from sandboxgym.core import forking, rng
from sandboxgym.core.errors import ReproductionError
from sandboxgym.core.plain import owned, plain_or_name
from sandboxgym.core.record import Record, is_recorded, recorded_reset, recorded_step
from sandboxgym.core.snapshot import Fidelity, SandboxSpec, Snapshot
from sandboxgym.core.version import __version__

ObsType = TypeVar("ObsType")
ActType = TypeVar("ActType")


class ForkableEnv(gym.Env[ObsType, ActType]):
    """Base class of environments whose state can be captured and put back exactly.

    An author writes `reset` and `step` as for any Gymnasium environment, and two hooks, `get_state`
    and `set_state`. The base class adds the random generators, the last observation and info, the
    recipe (seed, options, actions) and the digest.

    The contract: `reset` and `step` are deterministic functions of spec, seed, options and actions,
    in any process; nothing that varies (times, paths, process ids) is in an observation or info.
    Such things go to `metrics`. A `SandboxGymError` that `reset` or `step` raises is a refusal and
    leaves the environment as it was; any other exception ends the episode.

    Attributes:
        state_version: Raise it when the layout of `get_state` changes; older states are refused.
        state_is_witness: Whether `get_state` only tells states apart and cannot be set. Restoring
            then takes what `hold` kept, or replays the recipe.
        metrics: Counters and times of this instance; never part of a snapshot.
        choice: How `sandboxgym.forkable` came to make it, or None; print it.
    """

    state_version: ClassVar[int] = 1
    state_is_witness: ClassVar[bool] = False
    metrics: dict[str, float]
    choice: Any = None

    _record: Record | None = None
    _outermost: weakref.ref[gym.Env[Any, Any]] | None = None
    _constructor: Constructor
    _spec_of_sandbox: SandboxSpec | None = None
    _inside_call: bool = False
    _cached_versions: ClassVar[dict[str, str]]

    def __new__(cls, *args: Any, **kwargs: Any) -> ForkableEnv[ObsType, ActType]:
        """Remember the constructor's arguments: they say which environment this is."""
        self = super().__new__(cls)
        self._constructor = Constructor(args, kwargs)
        self.metrics = {}
        for name in ("action_space", "observation_space"):
            shared = getattr(cls, name, None)
            if isinstance(shared, gym.Space):  # its generator would be shared by all instances
                setattr(self, name, copy.deepcopy(shared))
        return self

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let every `reset` and `step` that a subclass defines keep the record of the episode."""
        super().__init_subclass__(**kwargs)
        # What the class resolves to, so that methods of a mixin are recorded too.
        if not is_recorded(cls.reset):
            setattr(cls, "reset", recorded_reset(cls.reset))  # noqa: B010 - mypy forbids assigning
        if not is_recorded(cls.step):
            setattr(cls, "step", recorded_step(cls.step))  # noqa: B010

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse `copy.deepcopy` and `pickle`, which miss what an environment does not own."""
        raise ReproductionError(
            f"a {type(self).__name__} is not copied or pickled: make a live twin with "
            "sandboxgym.fork(env, 1), or send env.snapshot().to_bytes() and restore it there"
        )

    def get_state(self) -> Any:
        """Return everything that decides the future, as plain data, without changing anything.

        Random generators that are not `np_random` or a space's belong to it too.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not say what its state is: implement get_state and "
            "set_state, or wrap it with sandboxgym.forkable(env, mechanism='replay')"
        )

    def set_state(self, state: Any) -> None:
        """Continue exactly from a state that `get_state` of an equal environment returned.

        Called also on an instance that was never reset. The state belongs to the callee.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement set_state")

    def hold(self) -> Any:
        """Keep the present state alive in this process, beside what `get_state` says.

        For states that are no plain data, such as a frozen copy of a process. What is returned goes
        with the snapshot, `weakref.finalize` on it can free resources, and it may stop being at
        hand at any time. None, the default, where `get_state` says it all.

        Raises:
            UncapturedStateError: The environment is in a state that cannot be kept.
        """
        return None

    def resume(self, held: Any) -> bool:
        """Continue from what `hold` of an equal environment returned, and leave that as it is.

        Returns:
            False, with nothing changed, where it is no longer at hand: the recipe is then replayed.
        """
        return False

    def unpack(self, packed: bytes) -> Any:
        """Make again what `hold` returned from what its method `pack` made of it.

        An environment whose held states can travel gives them that method. The bytes may come from
        anywhere, and are checked here.

        Returns:
            Something that `resume` takes, or None, as by default, to replay the recipe instead.

        Raises:
            SnapshotCorruptError: The bytes are not what `pack` makes.
        """
        return None

    @property
    def fidelity(self) -> Fidelity:
        """What a snapshot of this environment captures, and how."""
        return Fidelity()

    def reseed(self, seed: int) -> None:
        """Start new randomness from `seed`; an environment with other generators overrides it."""
        rng.reseed_generator(self, seed)

    def spawn(self) -> ForkableEnv[ObsType, ActType]:
        """A new instance of the same spec, not reset; `fork` puts a state into it."""
        new = type(self)(*self._constructor.args, **self._constructor.kwargs)
        new.spec = self.spec
        new._spec_of_sandbox = self._spec_of_sandbox
        return new

    def spec_kwargs(self) -> dict[str, Any]:
        """The constructor arguments that decide how this environment behaves.

        Two environments with the same id and the same values here accept each other's snapshots.
        The default is all arguments but `render_mode`.
        """
        return self._constructor.bound(type(self))

    def snapshot(self) -> Snapshot:
        """Capture this moment; see `sandboxgym.snapshot`, which also takes wrapped environments."""
        return forking.snapshot(self)

    def restore(
        self,
        snapshot: Snapshot,
        *,
        seed: int | None = None,
        verify: bool | None = None,
        rewind_statistics: bool = False,
    ) -> tuple[ObsType, dict[str, Any]]:
        """Return to the moment of a snapshot; see `sandboxgym.restore`."""
        return forking.restore(
            self, snapshot, seed=seed, verify=verify, rewind_statistics=rewind_statistics
        )

    def state_digest(self) -> str:
        """Canonical hash of the present state; equal digests mean equal futures."""
        return forking.state_digest(self)

    @property
    def sandbox_spec(self) -> SandboxSpec:
        """The id and the arguments that snapshots of this environment carry."""
        if self._spec_of_sandbox is None:
            cls = type(self)
            name = self.spec.id if self.spec else f"{cls.__module__}:{cls.__qualname__}"
            self._spec_of_sandbox = SandboxSpec(name, owned(self.spec_kwargs(), "spec_kwargs"))
        return self._spec_of_sandbox

    @property
    def sandbox_versions(self) -> dict[str, str]:
        """Versions that must agree for a captured state to be put back."""
        return _versions(type(self))


@dataclass(frozen=True)
class Constructor:
    """The arguments that an environment was constructed with."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def bound(self, cls: type) -> dict[str, Any]:
        """The arguments by name, defaults included, as plain data and without `render_mode`."""
        call = inspect.signature(cls).bind(*self.args, **self.kwargs)
        call.apply_defaults()
        named = dict(call.arguments)
        for parameter in call.signature.parameters.values():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                named.update(named.pop(parameter.name))
        named.pop("render_mode", None)
        return {name: plain_or_name(value) for name, value in named.items()}


def _versions(cls: type[ForkableEnv[Any, Any]]) -> dict[str, str]:
    if "_cached_versions" in cls.__dict__:
        return cls._cached_versions
    package = cls.__module__.partition(".")[0]
    versions = {"sandboxgym": __version__, f"{cls.__qualname__} state": str(cls.state_version)}
    if package != "sandboxgym":
        versions[package] = str(getattr(sys.modules.get(package), "__version__", "unknown"))
    cls._cached_versions = versions
    return versions
